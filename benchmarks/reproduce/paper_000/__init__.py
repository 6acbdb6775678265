"""Characterizing the decision boundary of deep neural networks (Karimi, Derr and Tang 2019): DeepDIG."""
