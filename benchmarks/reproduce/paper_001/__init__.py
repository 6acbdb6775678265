"""Investigating decision boundaries of trained neural networks (Yousefzadeh and O'Leary 2019)."""
