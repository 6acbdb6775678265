"""A query of a generator as a page: which units its image needs, and what images of their region have in common."""

from flipopt.report.generator.study import Explored, Exploring, study
from flipopt.report.generator.writing import write_generator_report

__all__ = ["Explored", "Exploring", "study", "write_generator_report"]
