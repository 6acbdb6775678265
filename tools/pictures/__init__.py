"""Pictures of the documentation: a file each, with a function ``draw(path)``."""
