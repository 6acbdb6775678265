"""Problems with known answers: the answers are right, and every problem can be made from its name."""

from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from benchmarks.problems import KNOWN, SIZES, TRAINED, BenchmarkProblems, known_case
from benchmarks.problems.known import distance_to_ellipsoid
from flipopt.verification import verify

ALL = BenchmarkProblems(known=2, images=1)


@pytest.mark.parametrize("name", [entry.name for entry in ALL.entries() if entry.family in KNOWN])
def test_the_known_distance_is_that_of_a_verified_flip_and_of_none_closer(name: str) -> None:
    case = known_case(name)
    assert int(case.network.predict(case.x)) == 0
    problem = fo.flip_problem(case.network, case.x, (0, 1))
    # Two spheres: from the nearer one's side. Elsewhere x will do.
    centre = getattr(case.network.module, "centres", None)
    start = case.x if centre is None else case.x + 0.5 * (centre.numpy()[0] - case.x)
    flip = fo.solvers.Scipy().solve(problem, start)
    assert flip.success, flip.message
    assert flip.distance == pytest.approx(case.distance, rel=1e-7)
    rng = np.random.default_rng(0)
    away = rng.standard_normal((2000, len(case.x)))
    inside = case.x + 0.999 * case.distance * away / np.linalg.norm(away, axis=1, keepdims=True)
    assert (case.network.predict(inside) == 0).all()


def test_the_distance_to_an_ellipsoid_along_an_axis_and_to_a_sphere() -> None:
    assert distance_to_ellipsoid(np.array([5.0, 0.0]), np.array([2.0, 1.0])) == pytest.approx(3.0, rel=1e-14)
    p = np.array([3.0, -4.0, 12.0])
    assert distance_to_ellipsoid(p, np.full(3, 2.0)) == pytest.approx(11.0, rel=1e-14)


def test_the_second_sphere_is_a_local_minimum_behind_the_first() -> None:
    case = known_case("spheres 2 0")
    centres, radii = case.network.module.centres.numpy(), case.network.module.radii.numpy()
    far = centres[1] + radii[1] * (case.x - centres[1]) / np.linalg.norm(case.x - centres[1])
    check = verify(fo.flip_problem(case.network, case.x, (0, 1)), far)
    assert check.closest()
    assert np.linalg.norm(far - case.x) > 1.5 * case.distance


def test_every_problem_is_made_from_its_name() -> None:
    entries = ALL.entries()
    assert len({entry.name for entry in entries}) == len(entries) == 3 * len(SIZES) * 2 + 2 * len(TRAINED)
    for entry in entries:
        if entry.family in ("plane", "erf", "relu", "cnn"):
            instance = ALL.make(entry.name)
            assert instance.entry == entry
            assert instance.problem.network.n_inputs == entry.n
            assert int(instance.network.predict(instance.problem.x)) == instance.problem.classes[0]
    assert set(ALL.answers()) == {entry.name for entry in entries if entry.family in KNOWN}
