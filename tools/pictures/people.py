"""The map that docs/howto/people.md draws, of the generator and the models that the page makes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "people.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def draw(path: Path) -> None:
    names: dict[str, Any] = {}
    before = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for block in BLOCK.findall(PAGE.read_text()):
                exec(block, names)
                if Path("map.png").exists():
                    break
        finally:
            os.chdir(before)
        names["study"].plot(path, rows=[f"{i} to {j}" for i, j in names["images"].pairs])
