"""The exact descent over the linear pieces of a ReLU network."""
