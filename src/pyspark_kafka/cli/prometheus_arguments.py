"""The command line of ``pyspark-kafka prometheus``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from ..application.lag.meter import MAX_COUNTED
from ..domain.checkpoints.storage_path import StoragePath
from .argument_values import (
    STORAGE_FILE,
    Commands,
    add_client,
    add_command,
    add_connection,
    add_storage_options,
    port,
    public_url,
    seconds,
    storage_options,
)
from .connection import Connection
from .lag_arguments import add_count_up_to

if TYPE_CHECKING:
    import argparse

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 9464
DEFAULT_INTERVAL: Final = 15.0
DEFAULT_TIMEOUT: Final = 15.0

_NAMED: Final = re.compile(r"(?P<name>[\w.-]+)=(?P<url>.+)", re.DOTALL)

_PROMETHEUS: Final = """\
Serve the lag behind checkpoints to Prometheus, until Ctrl-C or SIGTERM.

The checkpoints may be written by this source or by the JVM connector. The command
only reads them, and only reads from Kafka. A checkpoint whose lag cannot be measured
is shown by the metric pyspark_kafka_checkpoint_up and a line of the log.
"""


@final
@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """The checkpoints by name, and where and how often their lag is exported.

    ``interval`` and ``timeout`` are in seconds. Checkpoints may have secrets.
    """

    connection: Connection
    checkpoints: Mapping[str, StoragePath] = field(repr=False)
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    interval: float = DEFAULT_INTERVAL
    timeout: float = DEFAULT_TIMEOUT
    max_counted: int = MAX_COUNTED
    as_json: bool = False


def add_prometheus(commands: Commands) -> None:
    """Add the command ``prometheus``."""
    summary = "serve the lag of streaming queries to Prometheus"
    command = add_command(commands, "prometheus", summary, _PROMETHEUS, _settings)
    command.add_argument(
        "--checkpoint",
        metavar="[NAME=]URL",
        dest="checkpoints",
        type=_checkpoint,
        action="append",
        required=True,
        help="a query's checkpointLocation; NAME is the label 'query' of its series, by default "
        "the last part of the URL; may be repeated",
    )
    add_connection(command)
    add_storage_options(command)
    add_client(command)
    command.add_argument(
        "--host",
        default=DEFAULT_HOST,
        help="the address to listen on (default: %(default)s, only this machine)",
    )
    command.add_argument(
        "--port",
        type=port,
        default=DEFAULT_PORT,
        help="the port to listen on (default: %(default)s; 0: any that is free)",
    )
    command.add_argument(
        "--interval",
        metavar="SECONDS",
        type=seconds,
        default=DEFAULT_INTERVAL,
        help="the time between measurements (default: %(default)g)",
    )
    command.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=DEFAULT_TIMEOUT,
        help="how long a measurement of all checkpoints may take (default: %(default)g)",
    )
    add_count_up_to(command)
    command.add_argument("--json", action="store_true", help="print log lines as JSON")


def _checkpoint(text: str) -> tuple[str, str]:
    """Parse ``[NAME=]URL``."""
    named = _NAMED.fullmatch(text)
    url = public_url(STORAGE_FILE)(named["url"] if named else text)
    name = named["name"] if named else str(StoragePath(url or ".")).rstrip("/").rpartition("/")[2]
    return name, url


def _settings(given: argparse.Namespace) -> PrometheusSettings:
    names = [name for name, _ in given.checkpoints]
    for name in names:
        if names.count(name) > 1:
            given.error(f"two checkpoints are named '{name}': name them with NAME=URL")
    options = storage_options(given)
    return PrometheusSettings(
        Connection.given(given),
        {name: StoragePath(url, options) for name, url in given.checkpoints},
        given.host,
        given.port,
        given.interval,
        given.timeout,
        given.count_up_to,
        given.json,
    )
