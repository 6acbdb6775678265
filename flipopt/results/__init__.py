"""What a solve returns."""

from flipopt.results.better import better
from flipopt.results.result import SAME_DISTANCE, FlipResult, FlipTable, Stage, Status, save_tables

__all__ = ["SAME_DISTANCE", "FlipResult", "FlipTable", "Stage", "Status", "better", "save_tables"]
