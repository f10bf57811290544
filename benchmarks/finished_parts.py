"""The finished measurements of a run, in files, so that it can continue after an interruption."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from .run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def load_part(folder: Path, name: str, run: Run) -> Run | None:
    """Return the results of a measurement, if its file is whole and of a run like this one."""
    try:
        part = Run.from_json(_file(folder, name).read_text())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return part if (part.plan, part.machine) == (run.plan, run.machine) else None


def save_part(folder: Path, name: str, part: Run) -> None:
    """Write the results of a measurement."""
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"{name}.new"
    fresh.write_text(part.to_json())
    fresh.replace(_file(folder, name))


def join_parts(run: Run, parts: Sequence[Run]) -> Run:
    """Return a run with the sections of its parts, and the sittings in which they were made."""
    return replace(
        run,
        sections=tuple(chain.from_iterable(part.sections for part in parts)),
        sittings=tuple(sorted({began for part in parts for began in part.sittings})),
    )


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"
