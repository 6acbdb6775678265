"""Which solver, which formulation: all methods on the same problems, verified by one check."""
