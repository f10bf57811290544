"""The resident memory of a function in a process in which nothing else runs."""

from __future__ import annotations

import gc
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Arguments: TypeAlias = tuple[object, ...]

MB: Final = 1_000_000
_STATUS: Final = Path("/proc/self/status")
_RESET_PEAK: Final = "5"


def megabytes(use: Callable[..., object], small: Arguments, large: Arguments) -> float:
    """Return by how much a use raises the resident memory of a new process, at its peak.

    The process first runs it with ``small`` arguments, so that modules and connections do not
    count.
    """
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_growth, use, small, large).result()


def _growth(use: Callable[..., object], small: Arguments, large: Arguments) -> float:
    use(*small)
    gc.collect()
    Path("/proc/self/clear_refs").write_text(_RESET_PEAK)
    before = _bytes("VmRSS")
    use(*large)
    return (_bytes("VmHWM") - before) / MB


def _bytes(name: str) -> int:
    found = re.search(rf"{name}:\s*(\d+) kB", _STATUS.read_text())
    assert found is not None
    return int(found[1]) * 1024
