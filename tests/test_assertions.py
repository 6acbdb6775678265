"""No test asserts nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

FILES = sorted(Path(__file__).parent.rglob("*.py"))
RAISES = ("raises", "warns", "fail", "exec")
"""Of pytest, and the code of a page of the documentation; as ``assert_...`` of numpy, they fail by what they find."""


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def called(function: ast.FunctionDef) -> set[str]:
    """Names of what is called in a function."""
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}


def asserts(function: ast.FunctionDef) -> bool:
    """Whether it can fail by what it finds: an assertion that is no constant, or a call that asserts."""
    own = (node.test for node in ast.walk(function) if isinstance(node, ast.Assert))
    if any(not isinstance(test, ast.Constant) for test in own):
        return True
    return any(name in RAISES or name.startswith("assert_") for name in called(function))


def test_every_test_asserts_something() -> None:
    trees = {path: ast.parse(path.read_text()) for path in FILES}
    assert len(trees) > 50
    helpers = {f.name for tree in trees.values() for f in functions(tree) if asserts(f)}
    nothing = [
        f"{path.name}: {function.name}"
        for path, tree in trees.items()
        for function in functions(tree)
        if function.name.startswith("test_") and not asserts(function) and not called(function) & helpers
    ]
    assert nothing == []
