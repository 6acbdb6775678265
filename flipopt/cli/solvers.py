"""``flipopt solvers``: what is installed."""

from __future__ import annotations

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flipopt.solvers import installed


@click.command()
def solvers() -> None:
    """What is installed here, and how to get the rest."""
    table = Table("name", "here", "note")
    for line in installed():
        table.add_row(line.name, "yes" if line.available else "no", escape(line.note))
    Console().print(table)
