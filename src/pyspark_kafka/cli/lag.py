"""``pyspark-kafka lag``: how far a query is behind, for a person who watches."""

from __future__ import annotations

import logging
import os
import sys
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TextIO

from ..application.lag_checkpoint import QueryCheckpoint
from ..application.lag_monitor import LagMonitor, LagSnapshot
from ..bootstrap.container import container_for
from ..domain.errors import MetadataLogError, MissingDependencyError, PysparkKafkaError
from ..domain.options import QueryKind, parse_source_options, with_any_topic
from ..domain.storage_path import StoragePath
from .ending import until_told_to_end
from .lag_arguments import DEFAULT_INTERVAL
from .lag_json import lag_json
from .library_output import library_output_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..domain.options import SourceOptions
    from .lag_arguments import LagSettings
    from .lag_view import LagView

_DEFAULTS: Final = {
    # What a person waits for an answer; the query's own limits are those of a batch.
    "kafka.default.api.timeout.ms": "10000",
    "kafkaConsumer.pollTimeoutMs": "5000",
}


def run_lag(settings: LagSettings) -> int:
    """Show the lag, and give the exit status.

    :raises PysparkKafkaError: if the first look fails; later ones show it and go on.
    """
    with library_output_to(logging.NullHandler()), _opened(settings) as watch:
        show = _show_json if settings.as_json else _show_table
        try:
            show(settings, watch)
        except BrokenPipeError:
            # Whoever read has gone; Python would complain once more when it closes its output.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


@contextmanager
def _opened(settings: LagSettings) -> Iterator[LagMonitor]:
    from ..adapters.storage.fsspec_metadata_log import FsspecMetadataLog

    with ExitStack() as stack:
        container = container_for(_options(settings))
        stack.callback(container.shutdown_resources)
        path = StoragePath(settings.checkpoint, settings.storage_options)
        checkpoint = QueryCheckpoint(
            FsspecMetadataLog(path.child("offsets")), FsspecMetadataLog(path.child("commits"))
        )
        meter = container.lag_meter(most_counted=settings.most_counted)
        yield LagMonitor(checkpoint, meter, container.clock())


def _options(settings: LagSettings) -> SourceOptions:
    given = {
        **_DEFAULTS,
        "kafka.bootstrap.servers": settings.bootstrap_servers,
        "client": settings.client,
        **dict(settings.options),
    }
    # Topics are those of the checkpoint.
    return parse_source_options(with_any_topic(given), QueryKind.STREAM)


def _first_look(settings: LagSettings, watch: LagMonitor) -> LagSnapshot:
    look = watch.look()
    if look.state.is_empty:
        raise MetadataLogError(
            _name(settings),
            "There is no checkpoint of a streaming query: no batch was ever begun in it. Check "
            "--checkpoint, which is to be the query's checkpointLocation",
        )
    return look


def _show_json(settings: LagSettings, watch: LagMonitor) -> None:
    def show(look: LagSnapshot) -> None:
        print(lag_json(look, _name(settings), _now_ms()), flush=True)

    first = _first_look(settings, watch)
    show(first)
    if _is_once(settings, sys.stdout):
        return
    with until_told_to_end():
        for look, problem in _later_looks(settings, watch, first):
            if problem:
                print(problem, file=sys.stderr, flush=True)
            else:
                show(look)


def _show_table(settings: LagSettings, watch: LagMonitor) -> None:
    view_of = _view_maker(settings)
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    first = _first_look(settings, watch)
    if _is_once(settings, sys.stdout):
        console.print(view_of(first))
        return
    on_screen = partial(view_of, is_cut_to_screen=True)
    with (
        until_told_to_end(),
        Live(on_screen(first), console=console, auto_refresh=False) as live,
    ):
        for look, problem in _later_looks(settings, watch, first):
            live.update(on_screen(look, problem=problem), refresh=True)


def _later_looks(
    settings: LagSettings, watch: LagMonitor, look: LagSnapshot
) -> Iterator[tuple[LagSnapshot, str]]:
    """Give look after look; where one fails, the last one that did not, and why."""
    while True:
        time.sleep(settings.interval or DEFAULT_INTERVAL)
        try:
            look = watch.look()
        except PysparkKafkaError as error:
            yield look, error.message
        else:
            yield look, ""


def _view_maker(settings: LagSettings) -> Callable[..., LagView]:
    try:
        from .lag_view import LagView
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "rich":
            raise
        raise MissingDependencyError("rich, which draws the table,", "cli") from error
    servers = f"{settings.bootstrap_servers} ({settings.client})"

    def view_of(look: LagSnapshot, **more: Any) -> LagView:
        return LagView(look, _name(settings), servers, _now_ms(), **more)

    return view_of


def _is_once(settings: LagSettings, out: TextIO) -> bool:
    return settings.is_once or (settings.interval is None and not out.isatty())


def _name(settings: LagSettings) -> str:
    return str(StoragePath(settings.checkpoint))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
