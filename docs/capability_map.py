"""The map of the architecture page: the lines of each capability in each layer."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Final

import pyspark_kafka

SOURCE: Final = Path(pyspark_kafka.__file__).parent
PAGE: Final = Path(__file__).parent / "project" / "architecture.md"
LAYERS: Final = ("domain", "ports", "application", "adapters", "bootstrap", "cli", "testing")
OTHERS: Final = "others"


def capability_map() -> str:
    """Return a table with a row for each capability, and for each other folder of adapters."""
    names = re.findall(r"^\| `(\w+)` \|.*\| `[\w/]+\.py` \|$", PAGE.read_text(), re.MULTILINE)
    rooms: defaultdict[str, dict[str, list[Path]]] = defaultdict(dict)
    order = {name: place for place, name in enumerate(names)}
    for layer in LAYERS:
        for path in sorted((SOURCE / layer).rglob("*.py")):
            first = path.relative_to(SOURCE / layer).parts[0].removesuffix(".py")
            is_room = first in order or (layer == "adapters" and path.parent != SOURCE / layer)
            rooms[first if is_room else OTHERS].setdefault(layer, []).append(path)
    head = f"| | {' | '.join(f'`{layer}`' for layer in LAYERS)} | total |\n|---{'|---' * 8}|\n"
    rows = sorted(rooms.keys() - {OTHERS}, key=lambda name: (order.get(name, len(order)), name))
    return head + "\n".join(_row(name, rooms[name]) for name in (*rows, OTHERS))


def _row(name: str, room: dict[str, list[Path]]) -> str:
    sizes = {layer: sum(map(_lines, paths)) for layer, paths in room.items()}
    cells = (_cell(room[layer], sizes[layer]) if layer in room else "" for layer in LAYERS)
    title = name if name == OTHERS else f"`{name}`"
    return f"| {title} | {' | '.join(cells)} | {_rounded(sum(sizes.values()))} |"


def _cell(paths: list[Path], lines: int) -> str:
    """Return the lines, with a link to the folder's ``__init__.py`` or to its first file."""
    first = next((path for path in paths if path.name == "__init__.py"), paths[0])
    return f"[{_rounded(lines)}](../../src/{first.relative_to(SOURCE.parent).as_posix()})"


def _lines(path: Path) -> int:
    return path.read_text().count("\n")


def _rounded(lines: int) -> str:
    """Return thousands, rounded to hundreds, so that the page does not change with each line."""
    return f"{max(1, round(lines / 100)) / 10:.1f}k"
