"""erf(u) and its slope in one pass: the kernel that most of a network's time outside matrix products goes to.

scipy.special.erf followed by numpy.exp cost more than the matrix products of a whole network; this compiled loop
vectorises and shares one exponential between the two. Errors against the exact values are below 4 units in the last
place for erf and, relative to the slope, below about (1 + u^2) such units (tests/test_erf.py).

With g = exp(-u^2), which the slope needs anyway,

    erf(u) = u P(u^2)                      |u| < 1
    erf(u) = sign(u) (1 - g erfcx(|u|))    otherwise, erfcx a polynomial in t = (|u| - 3) / (|u| + 3)

Both branches are computed and one is chosen, so that the loop has no jumps. The polynomials come from
``python tools/erf_coefficients.py``.
"""

from __future__ import annotations

import numba
import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels.compiled import OPTIONS, compiled

ERF_64 = (
    1.1283791670955126,
    -0.3761263890318354,
    0.11283791670945006,
    -0.02686617064323777,
    0.0052239776071164227,
    -0.00085483259753896921,
    0.00012055294904839708,
    -1.492473690741966e-5,
    1.6447424703317362e-6,
    -1.6208483801871706e-7,
    1.3720064546777686e-8,
    -7.7958988270021422e-10,
)
ERFCX_64 = (
    0.17900115118138995,
    -0.32623356004303717,
    0.24560380171233194,
    -0.15011593650078744,
    0.071665837197748743,
    -0.024392499318273193,
    0.0042691363475082564,
    0.00070774644439015373,
    -0.00059706235170932843,
    4.5254726354833541e-5,
    6.4061820735305467e-5,
    -1.2848894512523529e-5,
    -8.0080213194126843e-6,
    2.0236031796417566e-6,
    1.2801900862962662e-6,
)
EXP_64 = (
    1.0,
    1.0,
    0.50000000000000184,
    0.16666666666666681,
    0.041666666666488095,
    0.0083333333333196006,
    0.0013888888952314775,
    0.00019841269890047114,
    2.4801485482328492e-5,
    2.755724091857897e-6,
    2.763263963904103e-7,
    2.5110037605963778e-8,
)
ERF_32 = (
    np.float32(1.12837917),
    np.float32(-0.376126267),
    np.float32(0.112835947),
    np.float32(-0.026854212),
    np.float32(0.00518908742),
    np.float32(-0.000801686429),
    np.float32(7.87587506e-5),
)
ERFCX_32 = (
    np.float32(0.179001145),
    np.float32(-0.326233674),
    np.float32(0.245605992),
    np.float32(-0.150098343),
    np.float32(0.0716035039),
    np.float32(-0.0250796378),
    np.float32(0.00274274907),
)
EXP_32 = (
    np.float32(1.0),
    np.float32(1.00000004),
    np.float32(0.500000005),
    np.float32(0.166664155),
    np.float32(0.0416663529),
    np.float32(0.0083751264),
    np.float32(0.00139411084),
)

# exp(-v) = 2^k exp(r), k = round(-v / log 2). Adding ROUND leaves k in the low bits of the sum, from where it is
# shifted into the exponent field of 2^k; log 2 is split in two so that k log 2 is subtracted without rounding.
INVERSE_LOG2_64, INVERSE_LOG2_32 = -1 / np.log(2), np.float32(-1 / np.log(2))
ROUND_64, ROUND_32 = 1.5 * 2.0**52, np.float32(1.5 * 2.0**23)
LOG2_HIGH_64, LOG2_HIGH_32 = 0xB17217F7D * 2.0**-36, np.float32(0.693359375)
LOG2_LOW_64, LOG2_LOW_32 = 1.6465949582897081e-12, np.float32(-2.121944401e-4)
LARGEST_64 = 708.0  # exp(-v) is a normal number up to here; beyond it the slope is returned as 0
LARGEST_32 = np.float32(87.0)


@numba.njit(**OPTIONS)
def _polynomial(coefficients, x):  # type: ignore[no-untyped-def]
    """Horner's rule on the even and the odd part side by side: half the latency of one long chain."""
    square = x * x
    last = len(coefficients) - 1
    first, second = coefficients[last], coefficients[last - 1]
    for j in range(last - 2, -1, -2):
        first = first * square + coefficients[j]
    for j in range(last - 3, -1, -2):
        second = second * square + coefficients[j]
    return first * x + second if last % 2 else second * x + first


@compiled
def _erf_64(c: Array, inverse_sigma: Array, value: Array, slope: Array) -> None:
    for row in range(c.shape[0]):
        for k in range(c.shape[1]):
            u = c[row, k] * inverse_sigma[k]
            a, v = abs(u), u * u
            w = LARGEST_64 if v > LARGEST_64 else v
            shifted = w * INVERSE_LOG2_64 + ROUND_64
            whole = shifted - ROUND_64
            r = (-w - whole * LOG2_HIGH_64) - whole * LOG2_LOW_64
            power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
            g = _polynomial(EXP_64, r) * power
            near = u * _polynomial(ERF_64, v)
            far = g * _polynomial(ERFCX_64, (a - 3.0) / (a + 3.0))
            value[row, k] = near if a < 1.0 else np.copysign(1.0 if a > 6.0 else 1.0 - far, u)
            slope[row, k] = (0.0 if v > LARGEST_64 else g) * (ERF_64[0] * inverse_sigma[k])


@compiled
def _erf_32(c: Array, inverse_sigma: Array, value: Array, slope: Array) -> None:
    one, three, four, zero = np.float32(1), np.float32(3), np.float32(4), np.float32(0)
    for row in range(c.shape[0]):
        for k in range(c.shape[1]):
            u = c[row, k] * inverse_sigma[k]
            a, v = abs(u), u * u
            w = LARGEST_32 if v > LARGEST_32 else v
            shifted = w * INVERSE_LOG2_32 + ROUND_32
            whole = shifted - ROUND_32
            r = (-w - whole * LOG2_HIGH_32) - whole * LOG2_LOW_32
            power = np.int32((np.float32(shifted).view(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)
            g = _polynomial(EXP_32, r) * power
            near = u * _polynomial(ERF_32, v)
            far = g * _polynomial(ERFCX_32, (a - three) / (a + three))
            value[row, k] = near if a < one else np.copysign(one if a > four else one - far, u)
            slope[row, k] = (zero if v > LARGEST_32 else g) * (ERF_32[0] * inverse_sigma[k])


def erf_and_slope(c: Array, sigma: float | Array) -> tuple[Array, Array]:
    """erf(c / sigma) and its derivative with respect to c.

    ``c`` is (rows, n), C-contiguous, float32 or float64; ``sigma`` is one number or (n,). Both results have c's shape
    and dtype.
    """
    inverse_sigma = np.full(c.shape[1], 1 / sigma, dtype=c.dtype)
    value, slope = np.empty_like(c), np.empty_like(c)
    kernel = _erf_32 if c.dtype == np.float32 else _erf_64
    kernel(c, inverse_sigma, value, slope)
    return value, slope
