"""The most fragile pairs of classes: a sentence on each, and a sample with its closest flip point."""

from __future__ import annotations

from typing import Any

import numpy as np

from flipopt.borderline import Instances, Measuring, Profile
from flipopt.borderline.baselines import nearest_pairs, random_pairs
from flipopt.borderline.closest import closest_of
from flipopt.borderline.samples import Samples
from flipopt.report.audit.fragile import changed, pictured
from flipopt.report.audit.section import counted, number, share
from flipopt.report.audit.study import Given

CARDS = 5
"""Pairs that are shown."""
PICTURED = 12
"""Sources of a pair, among which the one that is shown is found."""
METHODS = ("closest", "given", "epbs", "rpbs")
"""What is shown of a pair: the first of these that found something."""
WORDS = {
    "closest": "closest flip",
    "given": "given borderline instance",
    "epbs": "borderline instance of the nearest pair",
    "rpbs": "borderline instance of a random pair",
}


def cards(given: Given, found: Profile, options: Measuring, instances: Instances | None) -> list[dict[str, Any]]:
    """The most fragile pairs, each with a sentence and, of a typical sample, what flips it."""
    some = found.most_fragile(CARDS)
    if len(some) == 0:
        return []
    among = np.unique(some.classes).tolist()
    samples = Samples.of(given.network, given.X, given.truth, among=among)
    return [_card(given, some.take(slice(k, k + 1)), samples, options, instances) for k in range(len(some))]


def _card(
    given: Given, pair: Profile, samples: Samples, options: Measuring, instances: Instances | None
) -> dict[str, Any]:
    s, t = (int(k) for k in pair.classes[0])
    card: dict[str, Any] = {"source": pair.name_of(s), "target": pair.name_of(t), "words": sentence(pair)}
    method = next((name for name in METHODS if np.isfinite(getattr(pair, f"{name}_distance")[0])), None)
    shown = None if method is None else _typical(pair, method, _instances(method, samples, s, t, options, instances))
    if method is None or shown is None:
        return card
    k, x = int(shown.row[0]), shown.x[0]
    card |= {"row": int(given.row[k]), "what": WORDS[method], "distance": number(float(shown.distance[0]))}
    return card | ({"changes": changed(given, k, x)} if given.pictures is None else {"images": pictured(given, k, x)})


def _instances(
    method: str, samples: Samples, s: int, t: int, options: Measuring, instances: Instances | None
) -> Instances:
    """Of some of the sources that the profile was made of."""
    sources = len(samples.sources(s))
    if method == "closest":
        few = min(PICTURED, options.flips)
        return closest_of(samples, s, t, few, options.seed, {"bounds": options.bounds})
    if method == "given" and instances is not None:
        return instances.between(s, t)
    pairs = nearest_pairs if method == "epbs" else random_pairs
    return pairs(samples, s, t, min(options.pairs, sources), options.seed, options.refinement)


def _typical(pair: Profile, method: str, some: Instances) -> Instances | None:
    """The instance whose distance is nearest to the pair's median; None without one."""
    found = some.found
    if len(found) == 0:
        return None
    k = int(np.abs(found.distance - getattr(pair, f"{method}_distance")[0]).argmin())
    return found.take(slice(k, k + 1))


def sentence(pair: Profile) -> str:
    """A pair in words."""
    known = {name: float(getattr(pair, name)[0]) for name in pair.measures()}
    has = {name for name, value in known.items() if np.isfinite(value)}
    parts = []
    if "closest_distance" in has:
        parts.append(f"the closest flip is {number(known['closest_distance'])} away in the median")
    if "closest_converged" in has:
        parts.append(f"{share(known['closest_converged'])} of these searches end with a verified closest flip")
    for name, words in (("rpbs", "random pairs"), ("epbs", "nearest pairs"), ("given", "given pairs")):
        if f"{name}_success" in has:
            parts.append(_reached(name, words, known, has))
    if "idc" in has:
        low, high = known["idc_low"], known["idc_high"]
        parts.append(f"IDC is {known['idc']:.3f} ({low:.3f} to {high:.3f})")
    whole = counted(int(pair.sources[0]), "sample")
    return f"Of {whole}: {'; '.join(parts)}." if parts else f"{whole}; nothing could be measured."


def _reached(name: str, words: str, known: dict[str, float], has: set[str]) -> str:
    text = f"{words} end on the boundary for {share(known[f'{name}_success'])}"
    if f"{name}_farther" in has:
        text += f", {number(known[f'{name}_farther'], 2)} times as far as the closest flip"
    return text
