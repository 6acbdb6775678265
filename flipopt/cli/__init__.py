"""The ``flipopt`` command."""
