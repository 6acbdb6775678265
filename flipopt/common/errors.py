"""The exceptions flipopt raises. Every message names what was wrong, what was expected and what was found."""

from __future__ import annotations


class FlipoptError(Exception):
    """Base of every exception that flipopt raises on purpose."""


class InputError(FlipoptError, ValueError):
    """An argument has the wrong type, shape, range or value."""


class FileFormatError(FlipoptError, ValueError):
    """A file is missing, malformed, truncated, hostile or holds values that make no sense."""


class DerivativeError(FlipoptError, TypeError):
    """Derivatives were asked of a network that can only be evaluated."""


class MissingPackageError(FlipoptError, ImportError):
    """An optional package is needed; the message says how to install it."""


class StorageError(FlipoptError, OSError):
    """The file system refuses: no space, no permission, no such folder, or a run that is not the one asked for."""
