"""What the check calls zero."""

from __future__ import annotations

import numpy as np

ON_BOUNDARY = 1e-8
"""Largest |y_i - y_j| / |grad (y_i - y_j)|, relative to the flip's own distance, of a point on the boundary; also by
how much another class may be above, and, relative to max(1, |value|), a constraint of the user be violated."""
STATIONARY = 1e-6
"""Largest KKT residual of a point that is called closest."""
ACTIVE = 1e-6
"""An inequality within this of its bound, measured as ON_BOUNDARY is, may have a multiplier."""
CONFIRMED = 1e-4
"""Largest difference between the gradient that the KKT residual uses and what the outputs do, relative."""
ROUNDING = 32 * float(np.finfo(np.float64).eps)
"""Of a logit, relative to the largest one, and of x_hat, relative to its length: sums in another order, say."""
BLURRED = (1e-2, 1e-6)
"""Where the rounding of the logits hides more of the boundary than this, relative to the distance and to the length of
x_hat, it excuses no more: the boundary is not seen, except at x itself."""
