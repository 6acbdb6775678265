"""Which solver, which formulation: every method on the same problems, in one unit of cost, verified by one check."""
