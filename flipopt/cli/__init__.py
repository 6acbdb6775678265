"""The ``flipopt`` command, a file for each of its commands."""
