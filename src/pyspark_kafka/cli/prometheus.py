"""``pyspark-kafka prometheus``: serve the lag of streaming queries to Prometheus."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, final

from ..domain.checkpoints.storage_path import StoragePath
from ..domain.json_text import utc_text
from ..ports.clock import Deadline
from .arguments import (
    STORAGE_FILE,
    Commands,
    Connection,
    add_command,
    add_connection,
    add_storage_options,
    port,
    public_url,
    seconds,
    storage_options,
)
from .lag import add_count_up_to
from .output import logs_redirected_to, until_interrupted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping

    from ..application.lag.monitor import CheckpointReport, CheckpointWatch

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


def add_prometheus(commands: Commands) -> None:
    """Add the command ``prometheus``."""
    summary = "serve the lag of streaming queries to Prometheus"
    command = add_command(commands, "prometheus", summary, _PROMETHEUS, run_prometheus)
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


def run_prometheus(given: argparse.Namespace) -> int:
    """Serve the lag until the process is interrupted, and return the exit status.

    :raises PysparkKafkaError: if an option is invalid, or a package is missing.
    :raises OSError: if the address cannot be used.
    """
    checkpoints = _checkpoints(given)
    from ..bootstrap.tools import checkpoint_exporter_at, checkpoint_watch_for

    options = Connection.given(given).lag_options()
    watching = checkpoint_watch_for(options, checkpoints, given.count_up_to, given.timeout)
    with (
        logs_redirected_to(logging.NullHandler()),
        until_interrupted(),
        checkpoint_exporter_at(given.host, given.port) as (exporter, url),
        watching as watch,
    ):
        journal = _Journal(as_json=given.json)
        journal.begin(url, checkpoints)
        _measure_forever(watch, given.interval, (exporter.put, journal.note))
    return 0


def _checkpoints(given: argparse.Namespace) -> Mapping[str, StoragePath]:
    names = [name for name, _ in given.checkpoints]
    for name in names:
        if names.count(name) > 1:
            given.error(f"two checkpoints are named '{name}': name them with NAME=URL")
    options = storage_options(given)
    return {name: StoragePath(url, options) for name, url in given.checkpoints}


def _measure_forever(
    watch: CheckpointWatch, interval: float, takers: Iterable[Callable[[CheckpointReport], None]]
) -> None:
    while True:
        next_round = Deadline.after(interval)
        for report in watch.measure():
            for take in takers:
                take(report)
        time.sleep(next_round.remaining)


@final
class _Journal:
    """Prints a line when a checkpoint fails, when its error changes, and when it recovers."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._conditions: dict[str, str | None] = {}

    def begin(self, url: str, names: Iterable[str]) -> None:
        """Print the address, on stdout."""
        line = f"Serving the lag of {', '.join(names)} at {url}"
        print(json.dumps({"url": url}) if self._as_json else line, flush=True)

    def note(self, report: CheckpointReport) -> None:
        """Print a line on stderr, unless the checkpoint's last report was similar."""
        condition = report.failure.condition if report.failure else None
        if condition == self._conditions.get(report.name):
            return
        self._conditions[report.name] = condition
        text = report.failure.text if report.failure else "The lag is measured again"
        now = utc_text(datetime.now(UTC), "seconds")
        line = f"{now} {report.name}: {text}"
        if self._as_json:
            found = {"time": now, "query": report.name, "condition": condition, "text": text}
            line = json.dumps(found)
        print(line, file=sys.stderr, flush=True)
