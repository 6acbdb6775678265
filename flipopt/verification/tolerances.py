"""What the check calls zero."""

ON_BOUNDARY = 1e-8
"""Largest |y_i - y_j|, relative to max(1, |y_i|), of a point on the boundary; also for every other constraint."""
STATIONARY = 1e-6
"""Largest KKT residual of a point that is called closest."""
ACTIVE = 1e-6
"""An inequality within this of its bound, relative to max(1, |value|), may have a multiplier."""
