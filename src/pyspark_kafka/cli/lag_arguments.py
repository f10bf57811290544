"""The command line of ``pyspark-kafka lag``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Final, final

from ..application.lag.meter import MAX_COUNTED
from ..domain.options.source_table import CLIENT
from .argument_values import (
    STORAGE_FILE,
    Commands,
    add_client,
    add_command,
    add_connection,
    add_storage_options,
    connection_options,
    not_negative,
    public_url,
    seconds,
    storage_options,
)

DEFAULT_INTERVAL: Final = 2.0

_LAG: Final = f"""\
Show the lag of a streaming query, from its checkpoint, until Ctrl-C.

The checkpoint may be written by this source or by the JVM connector. The command
only reads it, and only reads from Kafka. In partitions with at most {MAX_COUNTED:,}
offsets left it counts records; in others the lag is in offsets, an upper bound
that includes transaction markers.
"""


@final
@dataclass(frozen=True, slots=True)
class LagSettings:
    """The query whose lag is shown, and how.

    ``interval`` is in seconds; ``None`` means the default on a terminal, and a single measurement
    elsewhere. ``options``, ``storage_options`` (JSON) and the URL may contain secrets.
    """

    checkpoint: str = field(repr=False)
    bootstrap_servers: str
    client: str = CLIENT.default
    interval: float | None = None
    as_json: bool = False
    is_once: bool = False
    max_counted: int = MAX_COUNTED
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    storage_options: str = field(default="{}", repr=False)


def add_lag(commands: Commands) -> None:
    """Add the command ``lag``."""
    lag = add_command(commands, "lag", "show the lag of a streaming query", _LAG, _settings)
    lag.add_argument(
        "--checkpoint",
        metavar="URL",
        type=public_url(STORAGE_FILE),
        required=True,
        help="the query's checkpointLocation: a directory, or a URL such as s3a://bucket/path",
    )
    add_connection(lag)
    add_storage_options(lag)
    add_client(lag)
    add_count_up_to(lag)
    lag.add_argument(
        "--interval",
        metavar="SECONDS",
        type=seconds,
        help=f"the time between measurements (default: {DEFAULT_INTERVAL:g})",
    )
    lag.add_argument(
        "--once",
        action="store_true",
        help="measure once; the default if the output is not a terminal and --interval is not set",
    )
    lag.add_argument("--json", action="store_true", help="print a line of JSON per measurement")


def add_count_up_to(command: argparse.ArgumentParser) -> None:
    """Add ``--count-up-to``."""
    command.add_argument(
        "--count-up-to",
        metavar="N",
        type=not_negative,
        default=MAX_COUNTED,
        help="count records in partitions with at most N offsets left "
        "(default: %(default)s; 0: never)",
    )


def _settings(given: argparse.Namespace) -> LagSettings:
    if given.once and given.interval is not None:
        given.error("--interval cannot go with --once")
    return LagSettings(
        given.checkpoint,
        given.bootstrap_servers,
        given.client,
        given.interval,
        given.json,
        given.once,
        given.count_up_to,
        connection_options(given),
        storage_options(given),
    )
