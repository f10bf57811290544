"""The command line of ``pyspark-kafka lag``."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from typing import Any, Final, final

from ..application.lag_meter import MAX_COUNTED
from ..domain.kafka_settings import PREFIX
from ..domain.options.table import CLIENT
from .argument_values import CLIENTS, Commands, client_settings, name_and_value, positive, seconds

DEFAULT_INTERVAL: Final = 2.0

_LAG: Final = f"""\
Show how far a streaming query is behind, by its checkpoint, until Ctrl-C.

The checkpoint may be this source's or the JVM connector's; nothing is written to
it, nor to Kafka. Where at most {MAX_COUNTED:,} offsets are left in a partition, the records
among them are counted; otherwise offsets are given, transaction markers included.
"""


@final
@dataclass(frozen=True, slots=True)
class LagSettings:
    """Whose lag is to be shown, and how.

    ``interval`` is in seconds; without one it is the default on a terminal, and elsewhere there is
    a single look. ``options``, ``storage_options`` (JSON) and the URL may carry secrets.
    """

    checkpoint: str = field(repr=False)
    bootstrap_servers: str
    client: str = CLIENT.default
    interval: float | None = None
    as_json: bool = False
    is_once: bool = False
    most_counted: int = MAX_COUNTED
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    storage_options: str = field(default="{}", repr=False)


def add_lag(commands: Commands) -> None:
    """Add the command."""
    lag = commands.add_parser(
        "lag",
        help="show how far a streaming query is behind",
        description=_LAG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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
        help="a file of client settings, a name=value each line, without the prefix 'kafka.': "
        "for what is to stand in no list of processes",
    )
    lag.add_argument(
        "--storage-option",
        metavar="NAME=VALUE",
        dest="storage_options",
        type=name_and_value,
        action="append",
        default=[],
        help="a setting of the checkpoint's storage, as fsspec takes it, JSON or text; "
        "may be repeated",
    )
    lag.add_argument(
        "--client",
        choices=CLIENTS,
        default=CLIENT.default,
        help="the Kafka client (default: %(default)s)",
    )
    lag.add_argument(
        "--count-up-to",
        metavar="N",
        type=_number,
        default=MAX_COUNTED,
        help="count records where at most N offsets are left in a partition "
        "(default: %(default)s; 0: nowhere)",
    )
    lag.add_argument(
        "--interval",
        metavar="SECONDS",
        type=seconds,
        help=f"how often to look (default: {DEFAULT_INTERVAL:g})",
    )
    lag.add_argument(
        "--once",
        action="store_true",
        help="look once; the default where the output is no terminal, unless --interval is given",
    )
    lag.add_argument("--json", action="store_true", help="a line of JSON for each look")
    lag.set_defaults(settings=_settings, error=lag.error)


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
    """Read JSON; what is none is a text, as most settings are."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _number(text: str) -> int:
    return 0 if text == "0" else positive(text)
