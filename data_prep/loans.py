"""A table of loan applications that nobody made, and a classifier of it: features in their own units.

    python -m data_prep.loans

It writes ``loans.csv`` (a sample of the applications) and ``loans.npz`` (the network) to benchmarks/problems.
Incomes are thousands of times as large as counts, counts are whole numbers, and two groups have exactly one 1. Whether
a loan is paid back follows a rule with interactions, and chance.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import flipopt as fo
from flipopt.common.checks import Array, optional_package

NAMES = (
    "income", "amount", "savings", "age", "years_employed", "accounts", "late_payments", "inquiries", "dependents",
    "rent", "mortgage", "own", "car", "home", "business",
)  # fmt: skip
WHOLE = ("age", "years_employed", "accounts", "late_payments", "inquiries", "dependents")
GROUPS = (("rent", "mortgage", "own"), ("car", "home", "business"))
HIDDEN = (24, 16)
ROWS, KEPT = 20_000, 400
"""Applications that are made, and those that the sample has."""


def applications(rows: int, seed: int) -> Array:
    """Applications (rows, 15), whole numbers throughout: incomes, amounts and savings are in units of money."""
    rng = np.random.default_rng(seed)
    age = np.clip(np.round(rng.normal(42, 12, rows)), 18, 85)
    income = np.round(np.exp(rng.normal(10.8, 0.5, rows)), -1)
    amount = np.round(np.exp(rng.normal(9.6, 0.7, rows)), -1)
    savings = np.round(np.exp(rng.normal(8.5, 1.2, rows)), -1)
    employed = np.minimum(np.round(rng.exponential(7, rows)), age - 18)
    counts = [rng.poisson(mean, rows) for mean in (4.0, 0.8, 1.5, 1.0)]
    home, purpose = np.eye(3)[rng.integers(0, 3, rows)], np.eye(3)[rng.integers(0, 3, rows)]
    table: list[Array] = [income, amount, savings, age, employed, *counts, home, purpose]
    return np.asarray(np.column_stack(table), dtype=np.float64)


def paid_back(X: Array, seed: int) -> Array:
    """1 for the applications that end well, (rows,)."""
    income, amount, savings, age, employed, accounts, late, inquiries, dependents = X[:, :9].T
    burden = np.log(amount / income) + 0.25 * dependents - 0.3 * X[:, 11] + 0.4 * X[:, 14]
    record = 0.9 * late + 0.3 * inquiries - 0.15 * np.minimum(employed, 15) - 0.1 * np.abs(accounts - 5)
    score = -1.2 * burden - record + 0.35 * np.log1p(savings) - 0.0008 * (age - 48) ** 2 - 2.4
    chance = 1 / (1 + np.exp(-score))
    return np.asarray(np.random.default_rng(seed).random(len(X)) < chance, dtype=np.int64)


def train(X: Array, labels: Array, seed: int) -> fo.DenseNetwork:
    """A tanh network of the applications as they are: the scaling it was trained with is put into its first layer."""
    from_sklearn = optional_package("sklearn.neural_network", "test", "training on the loans").MLPClassifier
    centre, spread = X.mean(axis=0), X.std(axis=0)
    mlp = from_sklearn(HIDDEN, activation="tanh", alpha=1e-3, max_iter=60, random_state=seed)
    mlp.fit((X - centre) / spread, labels)
    weights, biases = list(mlp.coefs_), list(mlp.intercepts_)
    biases[0] = biases[0] - (centre / spread) @ weights[0]
    weights[0] = weights[0] / spread[:, None]
    weights[-1], biases[-1] = weights[-1] * np.array([[-0.5, 0.5]]), biases[-1] * np.array([-0.5, 0.5])
    return fo.DenseNetwork(weights, biases, fo.Tanh())


def prepare(folder: Path, seed: int = 0) -> float:
    """Write the sample and the network to ``folder``; the accuracy on applications that training has not seen."""
    X, fresh = applications(ROWS, seed), applications(ROWS // 4, seed + 1)
    network = train(X, paid_back(X, seed + 2), seed)
    network.save(folder / "loans.npz")
    np.savetxt(folder / "loans.csv", fresh[:KEPT], fmt="%d", delimiter=",", header=",".join(NAMES), comments="")
    return float((network.predict(fresh) == paid_back(fresh, seed + 3)).mean())


if __name__ == "__main__":
    accuracy = prepare(Path("benchmarks/problems"))
    print(f"accuracy {accuracy:.3f} on {ROWS // 4:,} applications that training has not seen")
