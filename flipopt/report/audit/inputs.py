"""Every input in a table that can be sorted and filtered."""

from __future__ import annotations

from flipopt.report.audit.details import MOST_ROWS
from flipopt.report.audit.section import Section, counted
from flipopt.report.audit.study import Study


def inputs(study: Study, stored: int) -> Section:
    """The table itself is drawn by the page; ``stored`` says how many lines it keeps."""
    shown = "the nearest " if len(study) > MOST_ROWS else ""
    answer = f"All {counted(len(study), 'input')}" if not shown else f"{MOST_ROWS:,} of {counted(len(study), 'input')}"
    how = (
        f"{shown.capitalize()}Click a heading to sort, and a row to see its line to the flip: the probabilities of the "
        f"two classes on the way and beyond, which are stored for {counted(stored, 'input')}."
    )
    words = ", with what their nearest flip is." if not shown else " with the nearest flips."
    return Section("inputs", "Every input", answer + words, how, {"labelled": study.labels is not None})
