"""Where compiled kernels are."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

import platformdirs

DIRECTORY: Final = "NUMBA_CACHE_DIR"
SUFFIX: Final = ".kernel"


def cache_directories(folder: Path) -> list[Path]:
    """Return where the kernels of a folder of modules may be, by preference."""
    subfolder = f"{folder.name}_{hashlib.sha256(bytes(folder)).hexdigest()}"
    user = platformdirs.user_cache_path("pyspark-kafka") / "kernels" / subfolder
    given = os.environ.get(DIRECTORY)
    first = [Path(given) / subfolder] if given else []
    return [*first, folder / "__pycache__", user]
