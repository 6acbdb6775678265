"""All pairs of classes of a model measured: work that any executor can do and a run can keep."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.borderline.boundary import Boundaries, Measuring
from flipopt.borderline.instances import Instances
from flipopt.borderline.profile import Profile
from flipopt.borderline.samples import Samples, as_class
from flipopt.common.checks import Array, as_sequence, one_of
from flipopt.common.errors import InputError
from flipopt.common.progress import progress_bar
from flipopt.explain.matching import class_names
from flipopt.networks.wrapping import as_network
from flipopt.runs.computing import compute
from flipopt.runs.executors import as_executor, in_turn
from flipopt.runs.fingerprint import fingerprint
from flipopt.runs.store import Run
from flipopt.runs.work import Work

KIND = "borderline profile"


def profile(
    net: Any,
    X: Any,
    labels: ArrayLike | None = None,
    pairs: Any = "all",
    instances: Instances | None = None,
    test: Any = None,
    test_labels: ArrayLike | None = None,
    options: Measuring | None = None,
    run: str | Path | None = None,
    executor: Any = None,
    progress: bool = False,
) -> Profile:
    """Success, distances, IDC and EDC of every ordered pair of classes.

    Parameters
    ----------
    net
        Any network. Without derivatives there are no closest flip points, and without scikit-learn no EDC; the column
        ``note`` says so.
    X, labels
        Samples (rows, n_inputs) and their classes (rows,): positions, or names where the network has them; by default
        the classes that it predicts.
    pairs
        "all" pairs of classes that have samples which the network puts there too, or a list of pairs (s, t), by
        position or name. Both directions of a pair are measured.
    instances
        Borderline instances of another method, such as those that :func:`refine` makes between adversarial examples:
        of all classes in one table, with ``row`` counting X and distances from there. IDC and EDC are then measured on
        them.
    test, test_labels
        Samples for EDC that its support vector machine is not fitted on; without them a fifth of X is kept for that.
    options
        How much is measured, a :class:`Measuring`.
    run
        A folder in which every boundary is kept as it is done. If a run of the same call is there, it is gone on with.
    executor
        Who computes: None, threads of this process; "processes"; or a dask.distributed Client or its address.
    progress
        Whether to show a bar.
    """
    options = Measuring() if options is None else options
    for value, name, kind in ((options, "options", Measuring), (instances, "instances", Instances)):
        if value is not None and not isinstance(value, kind):
            raise InputError(f"{name}: expected {kind.__name__}, found {type(value).__name__}")
    network = as_network(net, X, many=True)
    wanted = None if isinstance(pairs, str) and one_of(pairs, ("all",), "pairs") else asked_pairs(network, pairs)
    among = None if wanted is None else sorted(set(wanted.reshape(-1).tolist()))
    samples = Samples.of(network, X, labels, among=among)
    held = None if test is None else Samples.of(network, test, test_labels, "test", among)
    task = Boundaries(samples, held, instances, options, sampled_pairs(samples, wanted))
    task.prepare()
    found = _done(task, run, as_executor(executor), progress)
    return Profile.join(found).named(class_names(None, network))


def _done(task: Boundaries, run: str | Path | None, who: Any, progress: bool) -> list[Profile]:
    work = Work(task, lambda part: part, len(task), 1, 1)
    if run is None:
        return _tracked(in_turn(who, work), len(task), progress)
    kept = Run.begin(run, KIND, _description(task), len(task), 1)
    compute(kept, work, who, Profile.to_arrow, "boundaries", progress)
    return [Profile.from_arrow(table) for table in kept.tables()]


def _tracked(parts: Iterable[Profile], total: int, progress: bool) -> list[Profile]:
    found: list[Profile] = []
    with progress_bar(KIND, total, "boundaries", progress) as advance:
        for part in parts:
            found.append(part)
            advance(len(found))
    return found


def _description(task: Boundaries) -> dict[str, Any]:
    """What is computed, by name."""
    held = None if task.held is None else (task.held.X, task.held.labels)
    things = {
        "network": task.samples.network,
        "X": task.samples.X,
        "labels": task.samples.labels,
        "pairs": task.classes,
        "instances": task.given,
        "test": held,
    }
    return {name: fingerprint(value) for name, value in things.items()} | {"options": repr(task.options)}


def asked_pairs(network: Any, pairs: Any) -> Array:
    """The boundaries of a list of pairs (s, t), (boundaries, 2), the smaller class first, each once."""
    found: list[tuple[int, int]] = []
    for pair in as_sequence(pairs, "pairs", "pairs of classes"):
        two = as_sequence(pair, "pairs", "pairs of classes")
        if len(two) != 2:
            raise InputError(f"pairs: expected two classes each, found {len(two)}")
        a, b = sorted(as_class(network, k, "pairs") for k in two)
        if a == b:
            raise InputError(f"pairs: expected two different classes, found class {a} twice")
        found.append((a, b))
    if not found:
        raise InputError("pairs: expected at least one pair of classes, found none")
    return np.array(list(dict.fromkeys(found)))


def sampled_pairs(samples: Samples, wanted: Array | None) -> Array:
    """The boundaries that are ``wanted``, or all, between classes with samples that the network puts there."""
    present = [k for k in range(samples.network.n_classes) if len(samples.partners(k))]
    if wanted is None:
        if len(present) < 2:
            raise InputError(f"X: expected samples of two classes that the network puts there, found {len(present)}")
        return np.array([(a, b) for a in present for b in present if a < b])
    lacking = np.setdiff1d(wanted, present)
    if len(lacking):
        raise InputError(f"pairs: expected classes with samples that the network puts there, found {lacking[0]}")
    return wanted
