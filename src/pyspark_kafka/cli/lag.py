"""``pyspark-kafka lag``: show the lag of a streaming query."""

from __future__ import annotations

import logging
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from ..application.checkpoints.logs import no_checkpoint
from ..bootstrap.tools import lag_monitor_for
from ..domain.checkpoints.storage_path import StoragePath
from ..domain.errors import PysparkKafkaError
from ..ports.clock import epoch_ms
from .connection import Connection
from .lag_arguments import DEFAULT_INTERVAL
from .lag_json import lag_json
from .process import ending_with_the_pipe, logs_redirected_to, until_interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..application.lag.monitor import LagMonitor, LagSnapshot
    from .lag_arguments import LagSettings
    from .lag_view import LagView


def run_lag(settings: LagSettings) -> int:
    """Show the lag, and return the exit status.

    :raises PysparkKafkaError: if the first measurement fails; later failures are only shown.
    """
    connection = Connection(settings.bootstrap_servers, settings.client, settings.options)
    monitoring = lag_monitor_for(
        connection.lag_options(),
        StoragePath(settings.checkpoint, settings.storage_options),
        settings.max_counted,
    )
    with logs_redirected_to(logging.NullHandler()), monitoring as monitor:
        show = _show_json if settings.as_json else _show_table
        with ending_with_the_pipe():
            show(settings, monitor)
    return 0


def _first_snapshot(settings: LagSettings, monitor: LagMonitor) -> LagSnapshot:
    snapshot = monitor.snapshot()
    if snapshot.state.is_empty:
        raise no_checkpoint(_name(settings))
    return snapshot


def _show_json(settings: LagSettings, monitor: LagMonitor) -> None:
    def show(snapshot: LagSnapshot) -> None:
        print(lag_json(snapshot, _name(settings), epoch_ms()), flush=True)

    first = _first_snapshot(settings, monitor)
    show(first)
    if _is_once(settings, sys.stdout):
        return
    with until_interrupted():
        for snapshot, problem in _later_snapshots(settings, monitor, first):
            if problem:
                print(problem, file=sys.stderr, flush=True)
            else:
                show(snapshot)


def _show_table(settings: LagSettings, monitor: LagMonitor) -> None:
    view_of = _view_maker(settings)
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    first = _first_snapshot(settings, monitor)
    if _is_once(settings, sys.stdout):
        console.print(view_of(first))
        return
    on_screen = partial(view_of, fits_screen=True)
    with until_interrupted(), Live(on_screen(first), console=console, auto_refresh=False) as live:
        for snapshot, problem in _later_snapshots(settings, monitor, first):
            live.update(on_screen(snapshot, problem=problem), refresh=True)


def _later_snapshots(
    settings: LagSettings, monitor: LagMonitor, snapshot: LagSnapshot
) -> Iterator[tuple[LagSnapshot, str]]:
    """Yield a snapshot per interval; if one fails, the last good one with the error's text."""
    while True:
        time.sleep(settings.interval or DEFAULT_INTERVAL)
        try:
            snapshot = monitor.snapshot()
        except PysparkKafkaError as error:
            yield snapshot, str(error)
        else:
            yield snapshot, ""


def _view_maker(settings: LagSettings) -> Callable[..., LagView]:
    from .lag_view import LagView

    servers = f"{settings.bootstrap_servers} ({settings.client})"

    def view_of(snapshot: LagSnapshot, **more: Any) -> LagView:
        return LagView(snapshot, _name(settings), servers, epoch_ms(), **more)

    return view_of


def _is_once(settings: LagSettings, out: TextIO) -> bool:
    return settings.is_once or (settings.interval is None and not out.isatty())


def _name(settings: LagSettings) -> str:
    return str(StoragePath(settings.checkpoint))
