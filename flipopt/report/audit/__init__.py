"""The audit of a model: one page that is read from top to bottom."""

from flipopt.report.audit.characterise import characterise
from flipopt.report.audit.section import Section
from flipopt.report.audit.writing import Contents, write_report

__all__ = ["Contents", "Section", "characterise", "write_report"]
