"""The command line of ``pyspark-kafka lag``."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from typing import Any, Final, final

from ..application.lag_meter import MAX_COUNTED
from ..domain.kafka_settings import PREFIX
from ..domain.options.table import CLIENT
from .argument_values import (
    Commands,
    add_client,
    add_command,
    client_settings,
    name_and_value,
    positive,
    seconds,
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
        required=True,
        help="the query's checkpointLocation: a directory, or a URL such as s3a://bucket/path",
    )
    lag.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT,...", required=True, help="the Kafka cluster"
    )
    lag.add_argument(
        "--option",
        metavar="NAME=VALUE",
        dest="options",
        type=name_and_value,
        action="append",
        default=[],
        help="an option of the query, such as kafka.security.protocol=SASL_SSL or "
        "kafka.isolation.level=read_committed; may be repeated",
    )
    lag.add_argument(
        "--command-config",
        metavar="FILE",
        type=client_settings,
        default=(),
        help="a file of client settings, one name=value a line, without the prefix 'kafka.': "
        "keeps passwords out of ps",
    )
    lag.add_argument(
        "--storage-option",
        metavar="NAME=VALUE",
        dest="storage_options",
        type=name_and_value,
        action="append",
        default=[],
        help="a setting of the checkpoint's storage, named as in fsspec, in JSON or as text; "
        "may be repeated",
    )
    add_client(lag)
    lag.add_argument(
        "--count-up-to",
        metavar="N",
        type=_number,
        default=MAX_COUNTED,
        help="count records in partitions with at most N offsets left "
        "(default: %(default)s; 0: never)",
    )
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
        (*((f"{PREFIX}{name}", value) for name, value in given.command_config), *given.options),
        json.dumps({name: _value(text) for name, text in given.storage_options}),
    )


def _value(text: str) -> Any:
    """Parse JSON; return any other text as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _number(text: str) -> int:
    return 0 if text == "0" else positive(text)
