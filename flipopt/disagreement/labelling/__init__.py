"""A page on which people label images: served to this machine, or as a form that stands alone."""

from flipopt.disagreement.labelling.answers import Answers
from flipopt.disagreement.labelling.images import as_pixels, png, read_images
from flipopt.disagreement.labelling.page import DIGITS, Page, Task, write_form
from flipopt.disagreement.labelling.server import Server

__all__ = ["DIGITS", "Answers", "Page", "Server", "Task", "as_pixels", "png", "read_images", "write_form"]
