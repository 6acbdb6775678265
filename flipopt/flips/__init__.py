"""The public verbs: closest flip points of one input and of many, least changes, further flips."""
