"""Pictures of section 3.3: what every tau and eta achieve, and the shape of erf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.special import erf

from benchmarks.reproduce import pictures
from flipopt.networks import DenseNetwork

SIGMAS = (0.1, 0.5, 1.0, 2.0, 5.0)


class Achieved(Protocol):
    """A cell of a grid: the share of problems solved, and evaluations of the network."""

    @property
    def share(self) -> float: ...

    @property
    def evaluations(self) -> float: ...


def draw_grids(
    path: Path, grids: Mapping[str, Sequence[Sequence[Achieved]]], taus: Sequence[float], etas: Sequence[int]
) -> None:
    """A column of two panels a title: shares solved above, evaluations below; a row a tau, a column an eta."""
    figure = pictures.figure(3.3 * len(grids) + 0.4, 4.2)
    axes = figure.subplots(2, len(grids), squeeze=False)
    counts = [cell.evaluations for grid in grids.values() for row in grid for cell in row]
    for (upper, lower), (title, grid) in zip(axes.T, grids.items(), strict=True):
        shares = np.array([[100 * cell.share for cell in row] for row in grid])
        evaluations = np.array([[cell.evaluations for cell in row] for row in grid])
        _heat(upper, shares, taus, etas, "RdYlGn", (-40.0, 140.0))  # paler, under black figures
        _heat(lower, evaluations, taus, etas, "Purples", (0.0, max(counts)))
        upper.set_title(title, fontsize=9)
        lower.set_xlabel("stages eta")
    axes[0, 0].set_ylabel("solved, %\ntau")
    axes[1, 0].set_ylabel("evaluations\ntau")
    pictures.save(figure, path)


def _heat(
    axis: Any, values: Any, taus: Sequence[float], etas: Sequence[int], colours: str, limits: tuple[float, float]
) -> None:
    axis.imshow(values, cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        dark = colours == "Purples" and value > 0.6 * limits[1]
        axis.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=7, color="white" if dark else "black")
    axis.set_xticks(range(len(etas)), [str(eta) for eta in etas], fontsize=8)
    axis.set_yticks(range(len(taus)), [f"{tau:g}" for tau in taus], fontsize=8)


def draw_erf(path: Path, networks: Mapping[str, DenseNetwork]) -> None:
    """erf(x / sigma) for several sigma, and the sigmas of every layer of some networks."""
    figure = pictures.figure(7.5, 2.8)
    left, right = figure.subplots(1, 2)
    x = np.linspace(-3, 3, 601)
    for k, sigma in enumerate(SIGMAS):
        shade = 0.15 + 0.7 * k / (len(SIGMAS) - 1)
        left.plot(x, erf(x / sigma), color=(shade, 0.3, 1 - shade), lw=1.2, label=f"{sigma:g}")
    left.legend(title="sigma", frameon=False, fontsize=7, title_fontsize=8, loc="upper left")
    left.set(xlabel="x", ylabel="erf(x / sigma)")
    for (name, network), colour in zip(networks.items(), (pictures.BLUE, pictures.RED), strict=False):
        trained = [float(np.ravel(activation.parameter_value)[0]) for activation in network.activations]
        right.plot(range(1, len(trained) + 1), trained, "o-", ms=3, lw=1, color=colour, label=name)
    right.axhline(1, color=pictures.QUIET, lw=0.8, ls=":")
    right.set(xlabel="hidden layer", ylabel="trained sigma", ylim=(0, None))
    right.legend(frameon=False, fontsize=8)
    pictures.save(figure, path)
