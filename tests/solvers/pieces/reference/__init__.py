"""The descent over linear pieces once more, in NumPy: what the compiled one is compared with."""
