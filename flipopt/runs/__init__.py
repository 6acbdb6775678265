"""Long work: split over cores, processes or a cluster, kept on disk as it is done, and gone on with."""

from flipopt.runs.store import Run, open  # noqa: A004

__all__ = ["Run", "open"]
