"""Activation functions: value, derivatives (by the parameter too), Lipschitz constants, relaxed form.

An activation acts elementwise on pre-activations ``c`` whose last axis runs over the neurons of a layer, and returns
arrays of the same shape and dtype. A parameter is one number for the layer or one per neuron.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, lambertw

from flipopt.common.checks import FLOATS, Array, as_floats
from flipopt.common.errors import DerivativeError, InputError

TWO_OVER_SQRT_PI = 2 / np.sqrt(np.pi)


class Activation(ABC):
    """A function applied to every neuron of a layer."""

    parameter: ClassVar[str | None] = None
    """Name of the tunable parameter, if there is one."""

    tunable: ClassVar[bool] = False
    """Whether the parameter may be chosen (a ReLU's alpha is 0)."""

    @property
    def parameter_value(self) -> float | Array:
        """The parameter, () or (n,); 0 where there is none."""
        return getattr(self, self.parameter) if self.parameter else 0.0

    @abstractmethod
    def value_and_slope(self, c: Array) -> tuple[Array, Array]:
        """The value and the first derivative at ``c``, in one pass."""

    @abstractmethod
    def curvature(self, c: Array) -> Array:
        """The second derivative at ``c``."""

    @abstractmethod
    def slope_range(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The smallest and largest slope over each interval [low, high]; the ends may be infinite."""

    def value(self, c: Array) -> Array:
        """The value at ``c``."""
        return self.value_and_slope(c)[0]

    def slope(self, c: Array) -> Array:
        """The first derivative at ``c``."""
        return self.value_and_slope(c)[1]

    def parameter_slope(self, c: Array) -> Array:
        """The derivative with respect to the parameter at ``c``."""
        raise DerivativeError(f"{type(self).__name__} has no parameter to differentiate by")

    def relaxed(self, c: Array, tau: float) -> Activation:
        """The homotopy's easy form of this activation for a layer with pre-activations ``c`` (n,) at x.

        Its slopes at ``c`` lie in [tau, 1], and nowhere is it steeper than 1. This default, a straight line of slope
        tau mixed in, is what algorithm F2 does to a ReLU, and does for every activation with slopes in [0, 1].
        """
        return Leaky(self, tau)

    def softened(self, share: float, size: float) -> Activation:
        """A smoother form, for boundaries with fewer folds; itself where there is none.

        ``share`` says how much smoother, ``size`` how large the pre-activations are, about.
        """
        return self

    def towards(self, other: Activation, t: float) -> Activation:
        """The activation a fraction ``t`` of the way to ``other``, linear in the parameters (algorithms 2 and F3)."""
        if self == other:
            return self
        if not self.tunable or type(self) is not type(other):
            raise InputError(f"other: expected a {type(self).__name__} with a parameter, found {other!r}")
        return type(self)(_between(self.parameter_value, other.parameter_value, t))  # type: ignore[call-arg]

    @property
    def lipschitz(self) -> Array:
        """The largest absolute slope anywhere: shape () for the layer, or (n,) per neuron."""
        everywhere = np.full(self.shape, np.inf)
        return np.asarray(np.max(np.abs(self.slope_range(-everywhere, everywhere)), axis=0))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the parameter: () for the layer (or no parameter), (n,) per neuron."""
        return np.shape(self.parameter_value)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Activation)
        return np.array_equal(self.parameter_value, other.parameter_value)

    def __hash__(self) -> int:
        return hash((type(self), np.asarray(self.parameter_value).tobytes()))

    def _set_parameter(self, value: ArrayLike) -> None:
        """Freeze the parameter as a float or a read-only (n,) array."""
        assert self.parameter is not None
        array = as_floats(value, self.parameter).astype(np.float64)  # a copy, so the caller's array stays the caller's
        if array.ndim > 1 or array.size == 0:
            raise InputError(f"{self.parameter}: expected one number or one per neuron, found shape {array.shape}")
        array.setflags(write=False)
        object.__setattr__(self, self.parameter, array if array.ndim else float(array))


@dataclass(frozen=True, eq=False)
class Erf(Activation):
    """erf(c / sigma), equation (7) of Yousefzadeh and O'Leary (2020): a step for small sigma, a line for large."""

    sigma: float | Array = 1.0
    parameter: ClassVar[str | None] = "sigma"
    tunable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._set_parameter(self.sigma)
        if np.min(self.sigma) <= 0:
            raise InputError(f"sigma: expected positive numbers, found {np.min(self.sigma)}")

    def value_and_slope(self, c: Array) -> tuple[Array, Array]:
        from flipopt.kernels.erf import erf_and_slope  # brings in numba, which takes half a second

        c = _floats(c)
        if self.shape and c.shape[-1:] != self.shape:
            c = np.broadcast_to(c, np.broadcast_shapes(c.shape, self.shape))
        rows = np.ascontiguousarray(c).reshape(-1, c.shape[-1] if c.ndim else 1)
        value, slope = erf_and_slope(rows, self.sigma)
        return value.reshape(c.shape), slope.reshape(c.shape)

    def curvature(self, c: Array) -> Array:
        return -2 * _like(self.sigma, c) ** -2 * c * self.slope(c)

    def parameter_slope(self, c: Array) -> Array:
        return -c / _like(self.sigma, c) * self.slope(c)

    def slope_range(self, low: Array, high: Array) -> tuple[Array, Array]:
        near, far = _distances(low, high)
        steepest = TWO_OVER_SQRT_PI / self.sigma
        return steepest * np.exp(-((far / self.sigma) ** 2)), steepest * np.exp(-((near / self.sigma) ** 2))

    def relaxed(self, c: Array, tau: float) -> Erf:
        """Algorithm 1: one sigma for the layer, or one per neuron where some |c| is too large for a common one."""
        largest = float(np.abs(c).max())
        return Erf(_erf_width(np.array(largest) if largest <= _reach_of_erf(tau) else np.abs(c), tau))

    def softened(self, share: float, size: float) -> Erf:
        """Wider by the share of its own width."""
        return Erf((1 + share) * np.asarray(self.sigma))


@dataclass(frozen=True, eq=False)
class PReLU(Activation):
    """c where c >= 0 and alpha c elsewhere, equation (17)."""

    alpha: float | Array = 0.25
    parameter: ClassVar[str | None] = "alpha"
    tunable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._set_parameter(self.alpha)

    def value_and_slope(self, c: Array) -> tuple[Array, Array]:
        c = _floats(c)
        slope = np.where(c >= 0, c.dtype.type(1), _like(self.alpha, c))
        return c * slope, slope

    def curvature(self, c: Array) -> Array:
        return np.zeros(np.broadcast_shapes(np.shape(c), self.shape), dtype=_floats(c).dtype)

    def parameter_slope(self, c: Array) -> Array:
        return np.minimum(c, 0) + self.curvature(c)

    def slope_range(self, low: Array, high: Array) -> tuple[Array, Array]:
        left, right = np.where(low < 0, self.alpha, 1.0), np.where(high >= 0, 1.0, self.alpha)
        return np.minimum(left, right), np.maximum(left, right)

    def relaxed(self, c: Array, tau: float) -> PReLU:
        """Algorithm F2: alpha is raised to tau where a neuron is negative; a steeper one keeps its slope, up to 1."""
        return PReLU(np.clip(self.alpha, tau if np.min(c) < 0 else -1.0, 1.0))

    def smoothed(self, tau: float) -> Leaky:
        """The ELU variant of F2: (1 - leak)(exp(c) - 1) + leak c where c < 0, whose slope has no jump at 0."""
        return Leaky(ELU(1.0), np.clip(self.alpha, tau, 1.0))

    def softened(self, share: float, size: float) -> Leaky:
        """The kink rounded off over the share of ``size``."""
        return Leaky(Softplus(share * size), self.alpha)

    def towards(self, other: Activation, t: float) -> Activation:
        if not isinstance(other, PReLU):
            return super().towards(other, t)
        return PReLU(_between(self.alpha, other.alpha, t))


@dataclass(frozen=True, eq=False)
class ReLU(PReLU):
    """max(c, 0): PReLU with alpha = 0."""

    alpha: ClassVar[float] = 0.0  # type: ignore[misc]
    tunable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        pass

    def value_and_slope(self, c: Array) -> tuple[Array, Array]:
        c = _floats(c)
        return np.maximum(c, 0), (c >= 0).astype(c.dtype)


@dataclass(frozen=True, eq=False)
class ELU(Activation):
    """c where c >= 0 and alpha (exp(c) - 1) elsewhere: equation (18) with its bracket put right."""

    alpha: float | Array = 1.0
    parameter: ClassVar[str | None] = "alpha"
    tunable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._set_parameter(self.alpha)

    def value_and_slope(self, c: Array) -> tuple[Array, Array]:
        c = _floats(c)
        below, alpha = np.minimum(c, 0), _like(self.alpha, c)
        positive = c >= 0
        return (
            np.where(positive, c, alpha * np.expm1(below)),
            np.where(positive, c.dtype.type(1), alpha * np.exp(below)),
        )

    def curvature(self, c: Array) -> Array:
        c = _floats(c)
        return np.where(c >= 0, c.dtype.type(0), _like(self.alpha, c) * np.exp(np.minimum(c, 0)))

    def parameter_slope(self, c: Array) -> Array:
        c = _floats(c)
        return np.expm1(np.minimum(c, 0)) + np.zeros(self.shape, dtype=c.dtype)

    def slope_range(self, low: Array, high: Array) -> tuple[Array, Array]:
        ends = [self.alpha * np.exp(np.minimum(end, 0)) for end in (low, high)]
        # Only one side of 0 may be in the interval; the other's slopes then stand for nothing.
        left = [np.where(low < 0, end, 1.0) for end in ends]
        right = np.where(high >= 0, 1.0, left[1])
        return np.minimum(np.minimum(*left), right), np.maximum(np.maximum(*left), right)

    def relaxed(self, c: Array, tau: float) -> Leaky:
        return Leaky(ELU(np.clip(self.alpha, 0.0, 1.0)), tau)


@dataclass(frozen=True, eq=False)
class Tanh(Activation):
    """tanh(c)."""

    def value_and_slope(self, c: Array) -> tuple[Array, Array]:
        value = np.tanh(_floats(c))
        return value, 1 - value * value

    def curvature(self, c: Array) -> Array:
        value, slope = self.value_and_slope(c)
        return -2 * value * slope

    def slope_range(self, low: Array, high: Array) -> tuple[Array, Array]:
        near, far = _distances(low, high)
        return 1 - np.tanh(far) ** 2, 1 - np.tanh(near) ** 2


@dataclass(frozen=True, eq=False)
class Identity(Activation):
    """c itself."""

    def value_and_slope(self, c: Array) -> tuple[Array, Array]:
        c = _floats(c)
        return c.copy(), np.ones_like(c)

    def curvature(self, c: Array) -> Array:
        return np.zeros_like(_floats(c))

    def slope_range(self, low: Array, high: Array) -> tuple[Array, Array]:
        one = np.ones(np.broadcast_shapes(np.shape(low), np.shape(high)))
        return one, one

    def relaxed(self, c: Array, tau: float) -> Identity:
        return self


@dataclass(frozen=True, eq=False)
class Softplus(Activation):
    """width log(1 + exp(c / width)): a ReLU with its kink rounded off. It lives in softened networks only."""

    width: float | Array = 1.0
    parameter: ClassVar[str | None] = "width"

    def __post_init__(self) -> None:
        self._set_parameter(self.width)
        if np.min(self.width) <= 0:
            raise InputError(f"width: expected positive numbers, found {np.min(self.width)}")

    def value_and_slope(self, c: Array) -> tuple[Array, Array]:
        c = _floats(c)
        width = _like(self.width, c)
        u = c / width
        return width * np.logaddexp(0, u), expit(u)

    def curvature(self, c: Array) -> Array:
        slope = self.slope(c)
        return np.asarray(slope * (1 - slope) / _like(self.width, c))

    def parameter_slope(self, c: Array) -> Array:
        value, slope = self.value_and_slope(c)
        return np.asarray((value - c * slope) / _like(self.width, c))

    def slope_range(self, low: Array, high: Array) -> tuple[Array, Array]:
        return expit(low / self.width), expit(high / self.width)


@dataclass(frozen=True, eq=False)
class Leaky(Activation):
    """(1 - leak) inner(c) + leak c: another activation with a straight line mixed in. It lives on homotopy paths and in
    softened networks only.

    Leaky(ReLU(), a) is PReLU(a), and Leaky(ELU(0), a) is the same function.
    """

    inner: Activation
    leak: float | Array = 0.0
    parameter: ClassVar[str | None] = "leak"

    def __post_init__(self) -> None:
        self._set_parameter(self.leak)

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(np.shape(self.leak), self.inner.shape)

    def value_and_slope(self, c: Array) -> tuple[Array, Array]:
        c = _floats(c)
        leak, (value, slope) = _like(self.leak, c), self.inner.value_and_slope(c)
        return (1 - leak) * value + leak * c, (1 - leak) * slope + leak

    def curvature(self, c: Array) -> Array:
        return np.asarray((1 - _like(self.leak, c)) * self.inner.curvature(c))

    def parameter_slope(self, c: Array) -> Array:
        return np.asarray(c - self.inner.value(c) + np.zeros(self.shape, dtype=_floats(c).dtype))

    def slope_range(self, low: Array, high: Array) -> tuple[Array, Array]:
        ends = ((1 - self.leak) * end + self.leak for end in self.inner.slope_range(low, high))
        bottom, top = ends
        return np.minimum(bottom, top), np.maximum(bottom, top)

    def towards(self, other: Activation, t: float) -> Leaky:
        """A PReLU is met as a leaky ELU(0), any other activation as one without a leak."""
        inner, leak = (ELU(0.0), other.alpha) if isinstance(other, PReLU) else (other, 0.0)
        return Leaky(self.inner.towards(inner, t), _between(self.leak, leak, t))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leaky) and self.inner == other.inner and np.array_equal(self.leak, other.leak)

    def __hash__(self) -> int:
        return hash((self.inner, np.asarray(self.leak).tobytes()))


ACTIVATIONS: dict[str, type[Activation]] = {
    "erf": Erf,
    "prelu": PReLU,
    "relu": ReLU,
    "elu": ELU,
    "tanh": Tanh,
    "identity": Identity,
}
"""Every activation by the name that files use."""


def _reach_of_erf(tau: float) -> float:
    """The largest |c| at which some sigma gives erf(c / sigma) a slope of tau: there sigma = sqrt(2) |c|."""
    return float(np.sqrt(2 / (np.pi * np.e)) / tau)


def _erf_width(c: Array, tau: float) -> Array:
    """The least sigma >= 2/sqrt(pi) at which erf(c / sigma) has slope tau or more at ``c`` >= 0.

    The printed line 4, sigma = |c| / gamma with gamma^2 = log(2 / (tau sqrt(pi))), gives a slope of tau with respect to
    c / sigma, that is tau / sigma with respect to c. With u = c / sigma the condition on the slope itself is
    u exp(-u^2) = tau c sqrt(pi) / 2, so u^2 = -W(-pi tau^2 c^2 / 2) / 2 on the lower branch of Lambert's W. Beyond the
    reach of tau no sigma will do, and the best one is taken, even if it is beyond the range of (16).
    """
    within = c <= _reach_of_erf(tau)
    argument = -np.pi * (tau * np.where(within & (c > 0), c, 1.0)) ** 2 / 2
    u = np.sqrt(-np.real(lambertw(np.maximum(argument, -1 / np.e), -1)) / 2)
    sigma = np.where(within, c / u * (1 + 1e-9), np.sqrt(2) * c)  # a little more, to be on the safe side of rounding
    return np.asarray(np.maximum(sigma, TWO_OVER_SQRT_PI))


def _between(a: float | Array, b: float | Array, t: float) -> Array:
    return np.asarray((1 - t) * np.asarray(a) + t * np.asarray(b))


def _distances(low: Array, high: Array) -> tuple[Array, Array]:
    """How near 0 an interval comes, and how far from it it reaches."""
    return np.maximum(0.0, np.maximum(low, -high)), np.maximum(np.abs(low), np.abs(high))


def _floats(c: Array) -> Array:
    """``c`` as an array of its own float dtype; anything else becomes float64. NaN passes through."""
    c = np.asarray(c)
    return c if c.dtype in FLOATS else c.astype(np.float64)


def _like(parameter: float | Array, c: Array) -> Array:
    """The parameter in c's dtype, so that float32 stays float32."""
    return np.asarray(parameter, dtype=_floats(c).dtype)
