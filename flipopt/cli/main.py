"""The ``flipopt`` command: a file for each of its commands."""

from __future__ import annotations

import click

from flipopt import __version__
from flipopt.cli.borderline import borderline
from flipopt.cli.characterise import characterise
from flipopt.cli.compare import compare
from flipopt.cli.demo import demo
from flipopt.cli.explain import explain
from flipopt.cli.generate import generate
from flipopt.cli.info import info
from flipopt.cli.label import label
from flipopt.cli.path import path
from flipopt.cli.report import report
from flipopt.cli.runs import runs
from flipopt.cli.solve import solve
from flipopt.cli.solvers import solvers
from flipopt.common.errors import FlipoptError
from flipopt.runs.stopping import Stopped, farewell, stoppable


class _Group(click.Group):
    """Turns flipopt's errors into one line and exit code 1, and signals into a line that says how to go on."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            with stoppable():
                return super().invoke(ctx)
        except FlipoptError as error:
            raise click.ClickException(str(error)) from error
        except Stopped as stopped:
            click.echo(farewell(stopped.number), err=True)
            return ctx.exit(128 + stopped.number)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="flipopt")
def main() -> None:
    """How close is an input to the point where a classifier changes its mind?"""


for command in (
    demo, info, solve, path, compare, explain, report, borderline, characterise, generate, label, solvers, runs,
):  # fmt: skip
    main.add_command(command)
