"""The command line of ``pyspark-kafka warm``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final, final

from .argument_values import Commands, add_command

_WARM: Final = """\
This command does nothing, and can be removed from images and init scripts: the
package has its kernels as machine code. Older releases compiled them on each
machine.
"""


@final
@dataclass(frozen=True, slots=True)
class WarmSettings:
    """There are none."""


def add_warm(commands: Commands) -> None:
    """Add the command ``warm``, with the options of older releases."""
    warm = add_command(commands, "warm", "does nothing any more", _WARM, lambda _: WarmSettings())
    warm.add_argument("--cpu", help=argparse.SUPPRESS)
    for name in ("--records-only", "--json"):
        warm.add_argument(name, action="store_true", help=argparse.SUPPRESS)
