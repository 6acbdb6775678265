"""``python -m tools.pictures [NAME ...]``: draw pictures of the documentation anew, by default all of them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
IMAGES = HERE.parents[1] / "docs" / "images"


def main(names: list[str]) -> None:
    known = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
    for name in set(names) - set(known):
        raise SystemExit(f"{name}: expected one of {', '.join(known)}")
    for name in names or known:
        path = IMAGES / f"{name}.png"
        import_module(f"tools.pictures.{name}").draw(path)
        print(f"{name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
