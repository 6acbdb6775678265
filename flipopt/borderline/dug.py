"""What DeepDIG has found: instances, the maps that led to them, and the folder that holds those."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.borderline.autoencoders import Autoencoder
from flipopt.borderline.carrying import Key, as_autoencoders, as_samples, carried_all
from flipopt.borderline.instances import Instances
from flipopt.borderline.maps import Maps, as_maps, keys, plain_records
from flipopt.borderline.refinement import Refinement
from flipopt.borderline.sweep import asked_pairs
from flipopt.common.checks import Array, as_whole, one_of
from flipopt.common.errors import FileFormatError, InputError
from flipopt.common.files import reading, require_file
from flipopt.common.limits import limits, require_within
from flipopt.common.writing import storing, write_synced
from flipopt.networks.wrapping import as_network

MANIFEST = "deepdig.json"
FORMAT = 1


@dataclass(frozen=True, eq=False)
class DeepDig:
    """Borderline instances by DeepDIG and the autoencoders that they come from.

    Attributes
    ----------
    instances
        A record for every source of every direction and seed. The success rate is of the pairs that both components
        led where they should; the yield of all sources.
    seeds
        The seed of every record, (records,).
    maps
        A record for every autoencoder; empty where the autoencoders were handed in.
    autoencoders
        By (s, t, component, seed).
    """

    instances: Instances
    seeds: Array
    maps: Maps
    autoencoders: dict[Key, Autoencoder]

    def of(self, seed: int) -> DeepDig:
        """What one seed has led to."""
        some = self.seeds == seed
        if not some.any():
            raise InputError(f"seed: expected one of {np.unique(self.seeds).tolist()}, found {seed!r}")
        maps = {key: value for key, value in self.autoencoders.items() if key[3] == seed}
        return DeepDig(self.instances.take(some), self.seeds[some], self.maps.take(self.maps.seed == seed), maps)

    def summary(self) -> str:
        """In plain words."""
        return f"{self.instances.summary()} {self.maps.summary() if len(self.maps) else ''}".strip()

    def __str__(self) -> str:
        return self.summary()

    def save(self, folder: str | Path) -> None:
        """Write an ONNX file for every autoencoder, and ``deepdig.json``, which says what they are."""
        folder = Path(folder)
        with storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for key, autoencoder in self.autoencoders.items():
            autoencoder.save(folder / _file(key))
        about = {"format": FORMAT, "keys": sorted(self.autoencoders), "maps": plain_records(self.maps)}
        write_synced(folder / MANIFEST, (json.dumps(about, indent=1) + "\n").encode())

    @classmethod
    def load(cls, folder: str | Path, net: Any, X: Any, labels: ArrayLike | None = None, **options: Any) -> DeepDig:
        """What :meth:`save` wrote, with the instances found again: :func:`carry`, whose ``options`` it takes."""
        return carry(net, folder, X, labels, **options)


def carry(
    net: Any,
    maps: str | Path | DeepDig | Mapping[Any, Any],
    X: Any,
    labels: ArrayLike | None = None,
    pairs: Any = "all",
    count: int | None = None,
    refinement: Refinement | None = None,
    progress: bool = False,
) -> DeepDig:
    """Samples led to the other class and back by autoencoders that are there, and Algorithm 1 between: without torch.

    Parameters
    ----------
    net, X, labels, progress
        As in :func:`deepdig`; the network needs no derivatives.
    maps
        The folder that a :class:`DeepDig` was saved in; one itself; or a mapping of (s, t, component), or
        (s, t, component, seed), to autoencoders or their ONNX files.
    pairs
        "all" directions that there are autoencoders of, or a list of pairs (s, t), whose directions must have some.
    count
        Sources of a direction, at most.
    refinement
        How lines are halved.
    """
    network, how = as_network(net, X, many=True), Refinement() if refinement is None else refinement
    if not isinstance(how, Refinement):
        raise InputError(f"refinement: expected Refinement, found {type(how).__name__}")
    count = None if count is None else as_whole(count, "count", least=1)
    table, autoencoders = _there(maps, network.n_inputs)
    units = list(dict.fromkeys((s, t, seed) for s, t, _, seed in [*keys(table), *autoencoders]))
    bad = [unit for unit in units if max(unit[:2]) >= network.n_classes or unit[0] == unit[1]]
    if bad:
        raise InputError(f"maps: expected two classes below {network.n_classes}, found {bad[0][:2]}")
    if not (isinstance(pairs, str) and one_of(pairs, ("all",), "pairs")):
        units = _among(units, asked_pairs(network, pairs))
    samples = as_samples(network, X, labels, sorted({k for unit in units for k in unit[:2]}))
    empty = [s for s, _, _ in units if len(samples.sources(s)) == 0]
    if empty or not units:
        raise InputError(f"maps: expected classes with samples, found {empty[0] if empty else 'no autoencoders'}")
    instances, seeds = carried_all(samples, units, autoencoders, count, how, progress)
    wanted = set(units)
    some = np.array([(s, t, seed) in wanted for s, t, _, seed in keys(table)], dtype=bool)
    kept = {key: value for key, value in autoencoders.items() if (*key[:2], key[3]) in wanted}
    return DeepDig(instances, seeds, table.take(some), kept)


def _among(units: list[tuple[int, int, int]], wanted: Array) -> list[tuple[int, int, int]]:
    """The directions of the pairs that are wanted, (pairs, 2)."""
    pairs = {(int(a), int(b)) for a, b in wanted}
    lacking = sorted(pairs - {(min(s, t), max(s, t)) for s, t, _ in units})
    if lacking:
        raise InputError(f"pairs: expected pairs that there are autoencoders of, found {lacking[0]}")
    return [unit for unit in units if (min(unit[:2]), max(unit[:2])) in pairs]


def _there(maps: Any, n_inputs: int) -> tuple[Maps, dict[Key, Autoencoder]]:
    """The records of the maps, if there are any, and the autoencoders."""
    if isinstance(maps, DeepDig):
        return maps.maps, as_autoencoders(maps.autoencoders, n_inputs)
    if isinstance(maps, Mapping):
        return Maps.of([]), as_autoencoders(maps, n_inputs)
    if not isinstance(maps, str | Path):
        raise InputError(f"maps: expected a folder, a DeepDig or a mapping, found {type(maps).__name__}")
    folder = Path(maps)
    table, named = _manifest(folder / MANIFEST)
    return table, {key: Autoencoder.read(folder / _file(key), n_inputs) for key in named}


def _manifest(path: Path) -> tuple[Maps, list[Key]]:
    """What is in a folder, by the manifest of anyone. File names are made here, and none is taken from it."""
    size = require_file(path)
    require_within(size, limits().directory, f"{path}: bytes")
    with reading(path, "the manifest of autoencoders"):
        content = path.read_bytes()
    try:
        about = json.loads(content)
        if about["format"] != FORMAT:
            raise FileFormatError(f"{path}: expected format {FORMAT}, found {about['format']!r:.40}")
        table, found = as_maps(about["maps"]), about["keys"]
        named = [(s, t, component, seed) for s, t, component, seed in found]
        if any(type(word) is not int or not 0 <= word < 2**62 for key in named for word in key):
            raise ValueError("expected keys of whole numbers >= 0")
    except FileFormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileFormatError(f"{path}: not the manifest of autoencoders: {type(error).__name__}: {error}") from error
    return table, named


def _file(key: Key) -> str:
    s, t, component, seed = key
    return f"autoencoder-{s}-{t}-{component}-{seed}.onnx"
