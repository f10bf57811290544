"""The command line of ``pyspark-kafka warm``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final, final

from .argument_values import Commands, add_command

_WARM: Final = """\
Compile all kernels of this package, for images and init scripts.

The first query on a machine compiles the kernels that it needs, which takes
seconds. This command compiles them ahead. They are stored in NUMBA_CACHE_DIR if
it is set, otherwise beside the package, or in the user's cache directory if the
package cannot be written.

Kernels are for the processor of this machine. For other machines, name the oldest
family of their processors with --cpu, and set NUMBA_CPU_NAME to it where Spark
runs.
"""


@final
@dataclass(frozen=True, slots=True)
class WarmSettings:
    """The kernels to compile; ``cpu`` is ``None`` for this machine's processor."""

    cpu: str | None = None
    has_formats: bool = True
    as_json: bool = False


def add_warm(commands: Commands) -> None:
    """Add the command ``warm``."""
    warm = add_command(commands, "warm", "compile all kernels ahead", _WARM, _settings)
    warm.add_argument(
        "--cpu",
        metavar="NAME",
        help="LLVM's name of a processor or family, such as x86-64-v3 or neoverse-n1 "
        "(default: NUMBA_CPU_NAME, or this machine's)",
    )
    warm.add_argument(
        "--records-only",
        action="store_true",
        help="leave out the kernels of JSON, Avro and Protobuf",
    )
    warm.add_argument("--json", action="store_true", help="print JSON")


def _settings(given: argparse.Namespace) -> WarmSettings:
    return WarmSettings(given.cpu, not given.records_only, given.json)
