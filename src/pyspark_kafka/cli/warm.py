"""``pyspark-kafka warm``, which images and init scripts of older releases call."""

from __future__ import annotations

import argparse
from typing import Final

from .arguments import Commands, add_command

_WARM: Final = """\
This command does nothing, and can be removed from images and init scripts: the
package has its kernels as machine code. Older releases compiled them on each
machine.
"""


def add_warm(commands: Commands) -> None:
    """Add the command ``warm``, with the options of older releases."""
    warm = add_command(commands, "warm", "does nothing", _WARM, run_warm)
    warm.add_argument("--cpu", help=argparse.SUPPRESS)
    for name in ("--records-only", "--json"):
        warm.add_argument(name, action="store_true", help=argparse.SUPPRESS)


def run_warm(_given: argparse.Namespace) -> int:
    """Print that there is nothing to do, and return the exit status."""
    print("Nothing to do: the package has its kernels as machine code.")
    return 0
