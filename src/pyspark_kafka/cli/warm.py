"""``pyspark-kafka warm``, which images and init scripts of older releases call."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .console import Console

if TYPE_CHECKING:
    from .warm_arguments import WarmSettings


def run_warm(_settings: WarmSettings) -> int:
    """Say that there is nothing to do, and return the exit status."""
    Console(sys.stdout).line("Nothing to do: the package has its kernels as machine code.")
    return 0
