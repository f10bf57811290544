"""``pyspark-kafka lag``: show the lag of a streaming query."""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TextIO

from ..application.lag.meter import MAX_COUNTED
from ..domain.checkpoints.storage_path import StoragePath
from ..domain.errors import PysparkKafkaError
from ..domain.json_text import utc_text
from ..ports.clock import epoch_ms
from .arguments import (
    STORAGE_FILE,
    Commands,
    Connection,
    add_command,
    add_connection,
    add_storage_options,
    not_negative,
    public_url,
    seconds,
    storage_options,
)
from .output import ending_with_the_pipe, logs_redirected_to, print_whole, until_interrupted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from ..application.lag.monitor import LagMonitor, LagSnapshot
    from ..domain.checkpoints.checkpoint_log import CheckpointedBatch
    from ..domain.lag.lag import PartitionLag
    from .lag_view import LagView

DEFAULT_INTERVAL: Final = 2.0

_LAG: Final = f"""\
Show the lag of a streaming query, from its checkpoint, until Ctrl-C.

The checkpoint may be written by this source or by the JVM connector. The command
only reads it, and only reads from Kafka. In partitions with at most {MAX_COUNTED:,}
offsets left it counts records; in others the lag is in offsets, an upper bound
that includes transaction markers.
"""


def add_lag(commands: Commands) -> None:
    """Add the command ``lag``."""
    lag = add_command(commands, "lag", "show the lag of a streaming query", _LAG, run_lag)
    lag.add_argument(
        "--checkpoint",
        metavar="URL",
        type=public_url(STORAGE_FILE),
        required=True,
        help="the query's checkpointLocation: a directory, or a URL such as s3a://bucket/path",
    )
    add_connection(lag)
    add_storage_options(lag)
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


def run_lag(given: argparse.Namespace) -> int:
    """Show the lag, and return the exit status.

    :raises PysparkKafkaError: if the first measurement fails; later failures are only shown.
    """
    if given.once and given.interval is not None:
        given.error("--interval cannot go with --once")
    from ..bootstrap.tools import lag_monitor_for

    monitoring = lag_monitor_for(
        Connection.given(given).lag_options(),
        StoragePath(given.checkpoint, storage_options(given)),
        given.count_up_to,
    )
    with logs_redirected_to(logging.NullHandler()), monitoring as monitor:
        show = _show_json if given.json else _show_table
        with ending_with_the_pipe():
            show(given, monitor)
    return 0


def _first_snapshot(given: argparse.Namespace, monitor: LagMonitor) -> LagSnapshot:
    snapshot = monitor.snapshot()
    snapshot.state.require_batch(_name(given))
    return snapshot


def _show_json(given: argparse.Namespace, monitor: LagMonitor) -> None:
    def show(snapshot: LagSnapshot) -> None:
        print(lag_json(snapshot, _name(given), epoch_ms()), flush=True)

    first = _first_snapshot(given, monitor)
    show(first)
    if _is_once(given, sys.stdout):
        return
    with until_interrupted():
        for snapshot, problem in _later_snapshots(given, monitor, first):
            if problem:
                print(problem, file=sys.stderr, flush=True)
            else:
                show(snapshot)


def _show_table(given: argparse.Namespace, monitor: LagMonitor) -> None:
    view_of = _view_maker(given)
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    first = _first_snapshot(given, monitor)
    if _is_once(given, sys.stdout):
        print_whole(*view_of(first).parts(console.options))
        return
    with until_interrupted(), Live(view_of(first), console=console, auto_refresh=False) as live:
        for snapshot, problem in _later_snapshots(given, monitor, first):
            live.update(view_of(snapshot, problem=problem), refresh=True)


def _later_snapshots(
    given: argparse.Namespace, monitor: LagMonitor, snapshot: LagSnapshot
) -> Iterator[tuple[LagSnapshot, str]]:
    """Yield a snapshot per interval; if one fails, the last good snapshot with the error's text."""
    while True:
        time.sleep(given.interval or DEFAULT_INTERVAL)
        try:
            snapshot = monitor.snapshot()
        except PysparkKafkaError as error:
            yield snapshot, str(error)
        else:
            yield snapshot, ""


def _view_maker(given: argparse.Namespace) -> Callable[..., LagView]:
    from .lag_view import LagView

    servers = f"{given.bootstrap_servers} ({given.client})"

    def view_of(snapshot: LagSnapshot, **more: Any) -> LagView:
        return LagView(snapshot, _name(given), servers, epoch_ms(), **more)

    return view_of


def _is_once(given: argparse.Namespace, out: TextIO) -> bool:
    return given.once or (given.interval is None and not out.isatty())


def _name(given: argparse.Namespace) -> str:
    return str(StoragePath(given.checkpoint))


def lag_json(snapshot: LagSnapshot, checkpoint: str, now_ms: int) -> str:
    """Return a snapshot as one line of JSON; times are ISO 8601 in UTC."""
    numbers = snapshot.numbers
    answer = {
        "time": _time(now_ms),
        "checkpoint": checkpoint,
        "committedBatch": batch_json(snapshot.state.committed),
        "inFlightBatch": batch_json(snapshot.state.in_flight),
        "lag": {
            "total": snapshot.total,
            "min": min(numbers, default=0),
            "max": max(numbers, default=0),
            "avg": snapshot.total / len(numbers) if numbers else 0.0,
            "exact": snapshot.is_exact,
        }
        if snapshot.state.committed
        else None,
        "trend": {
            "direction": snapshot.trend.direction.value,
            "offsetsReadPerSecond": snapshot.trend.read,
            "offsetsArrivedPerSecond": snapshot.trend.arrived,
        },
        "partitions": [
            {"source": source, **_partition(each)}
            for source, lag in snapshot.sources.items()
            for each in lag.partitions
        ],
        "gone": [{"topic": gone.topic, "partition": gone.partition} for gone in snapshot.gone],
    }
    return json.dumps(answer)


def batch_json(batch: CheckpointedBatch | None) -> dict[str, Any] | None:
    """Return a batch of the offset log, ``None`` if there is none."""
    if batch is None:
        return None
    begun = None if batch.timestamp_ms is None else _time(batch.timestamp_ms)
    return {"id": batch.batch_id, "begun": begun}


def _partition(lag: PartitionLag) -> dict[str, Any]:
    return {
        "topic": lag.partition.topic,
        "partition": lag.partition.partition,
        "consumed": lag.consumed,
        "latest": lag.latest,
        "lag": lag.lag,
        "exact": lag.is_exact,
        "expired": lag.expired,
    }


def _time(milliseconds: int) -> str:
    return utc_text(datetime.fromtimestamp(milliseconds / 1_000, UTC))
