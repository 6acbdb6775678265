"""What a solve returns: a status, the result of one problem, the table of many and its file."""

from flipopt.results.better import SAME_DISTANCE, best, best_first, better, order
from flipopt.results.result import PROVED, FlipResult, Stage
from flipopt.results.status import Status
from flipopt.results.table import FlipTable, save_tables

__all__ = [
    "PROVED", "SAME_DISTANCE", "FlipResult", "FlipTable", "Stage", "Status", "best", "best_first", "better", "order",
    "save_tables",
]  # fmt: skip
