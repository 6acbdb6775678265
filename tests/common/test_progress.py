"""The progress bar shows the count, the whole and a rate, or nothing at all."""

from __future__ import annotations

import io

from rich.console import Console

from flipopt.common.progress import progress_bar, tracked


def console() -> Console:
    return Console(file=io.StringIO(), width=120)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_bar_ends_with_the_count_and_the_rate() -> None:
    screen = console()
    with progress_bar("flip points", 40, "rows", console=screen) as advance:
        advance(10)
        advance(40)
    assert "flip points" in shown(screen)
    assert "40/40" in shown(screen)
    assert "rows/s" in shown(screen)


def test_the_total_may_come_later() -> None:
    screen = console()
    with progress_bar("problems", console=screen) as advance:
        advance(0, 7)
        advance(7, 7)
    assert "7/7" in shown(screen)


def test_no_bar_is_shown_unless_wanted() -> None:
    screen = console()
    with progress_bar("flip points", 3, shown=False, console=screen) as advance:
        advance(3)
    assert shown(screen) == ""


def test_items_pass_in_order_under_a_bar() -> None:
    screen = console()
    assert list(tracked("abc", "letters", screen)) == ["a", "b", "c"]
    assert "3/3" in shown(screen)
