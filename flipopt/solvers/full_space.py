"""The flip problem with every layer in the open: IPOPT on a full-space formulation, by casadi's symbolic derivatives.

The variables are the input and the pre-activations of every layer,

    minimise    sum w (x_hat - x)^2
    over        x_hat, c(1), ..., c(m)
    such that   c(1) = x_hat W(1) + b(1),   c(k) = activation(c(k-1)) W(k) + b(k),   the goal on c(m).

So every constraint is shallow, and the Hessian of the Lagrangian is diagonal; the price is as many variables as the
network has neurons, and a sparse system with all its weights at every iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.networks.activations import ELU, Activation, Erf, Identity, PReLU, Tanh
from flipopt.problem import Goal, Oracle, Setting
from flipopt.results import Status
from flipopt.solvers.ipopt import BY_NAME
from flipopt.solvers.template import Answer, Capabilities, Solver

SYMBOLIC = (Erf, PReLU, ELU, Tanh, Identity)
LARGEST_WEIGHTS = 2_000_000
"""Weights of a network above which a sparse factorisation of all of them is hopeless."""


@dataclass(frozen=True, kw_only=True)
class FullSpace(Solver):
    """IPOPT with the layers' pre-activations as variables."""

    tol: float = 1e-9
    """IPOPT's own convergence tolerance."""

    @property
    def name(self) -> str:
        return "full-space"

    @property
    def summary(self) -> str:
        return "interior point with all layers as variables, exact sparse Hessian"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(smooth_norms_only=True)

    def cannot(self, setting: Setting, goal: Goal | None = None) -> str | None:
        net = setting.network
        if not isinstance(net, DenseNetwork) or not all(isinstance(layer, SYMBOLIC) for layer in net.activations):
            return "full-space takes dense networks with activations that casadi can differentiate"
        if setting.outputs != "logits" or setting.constraints:
            return "full-space takes flips in the logits, without further constraints"
        if sum(W.size for W in net.weights) > LARGEST_WEIGHTS:
            return f"full-space takes networks with at most {LARGEST_WEIGHTS:,} weights"
        return super().cannot(setting, goal)

    def _solve(self, oracle: Oracle, u0: Array) -> Answer:
        import casadi

        problem, start = oracle.problem, oracle.point(u0)
        net = problem.network
        assert isinstance(net, DenseNetwork)
        scale, size = problem.setting.scale, oracle.goal_scale
        variables, constraints, logits = _layers(casadi, net, scale, size)
        u = variables[0]
        nlp = {
            "x": casadi.vertcat(*variables),
            "f": casadi.dot(problem.weights / scale**2, (u - scale * problem.x) ** 2),
            "g": casadi.vertcat(*constraints, casadi.mtimes(problem.goal.T, logits)),
        }
        solver = casadi.nlpsol("flip", "ipopt", nlp, self._options())
        *hidden_layers, last = net.pre_activations(start)
        first = np.concatenate([scale * start, *hidden_layers, size * last])
        hidden, layers = np.full(len(first) - len(start), np.inf), np.zeros(len(first) - len(start))
        lower = scale * np.where(problem.frozen, problem.x, problem.lower)
        upper = scale * np.where(problem.frozen, problem.x, problem.upper)
        found = solver(
            x0=first,
            lbx=np.concatenate([lower, -hidden]),
            ubx=np.concatenate([upper, hidden]),
            lbg=np.concatenate([layers, size * problem.goal.lower]),
            ubg=np.concatenate([layers, size * problem.goal.upper]),
        )
        stats = solver.stats()
        # One evaluation of all layers' constraints costs a forward pass, one of their derivatives a backward pass.
        oracle.evaluations.forward += int(stats.get("n_call_nlp_g", 0))
        oracle.evaluations.backward += int(stats.get("n_call_nlp_jac_g", 0))
        oracle.evaluations.hessian += int(stats.get("n_call_nlp_hess_l", 0))
        name = str(stats["return_status"])
        point = np.asarray(found["x"]).reshape(-1)[: len(start)] / scale
        status = BY_NAME.get(name, Status.NUMERICAL_ERROR)
        return Answer(oracle.variables(point), status, name, int(stats.get("iter_count", 0)))

    def _options(self) -> dict[str, Any]:
        ipopt: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "print_level": 0, "sb": "yes"}
        ipopt |= {"bound_relax_factor": 1e-10, "honor_original_bounds": "yes"}
        if self.max_evaluations is not None:
            ipopt["max_iter"] = min(self.max_iter, self.max_evaluations)
        if self.max_seconds is not None:
            ipopt["max_wall_time"] = float(self.max_seconds)
        quiet = {"print_time": False, "show_eval_warnings": False, "error_on_fail": False}
        return {f"ipopt.{key}": value for key, value in ipopt.items()} | quiet


def _layers(casadi: Any, net: DenseNetwork, scale: Array, size: float) -> tuple[list[Any], list[Any], Any]:
    """The variables scale * x_hat, c(1), ..., size * c(m), the constraints between them, and the last, the logits."""
    u = casadi.MX.sym("u", net.n_inputs)
    variables, constraints, y, c = [u], [], u / scale, u
    for k, (W, b) in enumerate(zip(net.weights, net.biases, strict=True)):
        c = casadi.MX.sym(f"c{k + 1}", W.shape[1])
        variables.append(c)
        by = size if k == net.n_layers - 1 else 1.0
        constraints.append(casadi.mtimes(by * W.T.astype(np.float64), y) + by * b.astype(np.float64) - c)
        y = _activated(casadi, net.activations[k], c) if k < net.n_layers - 1 else c
    return variables, constraints, c


def _activated(casadi: Any, activation: Activation, c: Any) -> Any:
    """The activation of the expression c (n, 1)."""
    match activation:
        case Erf():
            return casadi.erf(c / np.broadcast_to(activation.sigma, c.shape[0]))
        case PReLU():
            alpha = np.broadcast_to(activation.alpha, c.shape[0])
            return casadi.if_else(c >= 0, c, alpha * c)
        case ELU():
            alpha = np.broadcast_to(activation.alpha, c.shape[0])
            return casadi.if_else(c >= 0, c, alpha * (casadi.exp(casadi.fmin(c, 0)) - 1))
        case Tanh():
            return casadi.tanh(c)
    return c
