"""Lines between points, and where they cross a boundary."""
