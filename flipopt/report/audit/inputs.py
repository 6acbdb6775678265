"""Every input in a table that can be sorted and filtered."""

from __future__ import annotations

from flipopt.report.audit.details import MOST_ROWS
from flipopt.report.audit.section import Section, counted
from flipopt.report.audit.study import Study


def inputs(study: Study, stored: int) -> Section:
    """The table itself is drawn by the page; ``stored`` says how many lines it keeps."""
    whole = counted(len(study), "input")
    answer = f"All {whole}, with what their nearest flip is."
    if len(study) > MOST_ROWS:
        answer = f"The {MOST_ROWS:,} of {whole} with the nearest flips, and those that are named elsewhere."
    how = (
        f"Click a heading to sort, and a row to see its line to the flip: the probabilities of the "
        f"two classes on the way and beyond, which are stored for {counted(stored, 'input')}."
    )
    return Section("inputs", "Every input", answer, how, {"labelled": study.labels is not None})
