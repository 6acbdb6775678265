"""Deep learning interpretation: flip points and homotopy methods (Yousefzadeh and O'Leary 2020)."""
