"""What is proved of a network on a ball, and the distances that follow."""
