"""Parts for the command line and listeners, each with its clients, which it closes afterwards.

Functions that take ``SourceOptions`` raise ``OptionsError`` if the value of the option ``client``
is unknown; those that take checkpoints raise ``UnsupportedFeatureError`` if their storage is not
supported.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from ..domain.errors import OptionsError
from ..domain.options.sink import dead_letter_sink
from ..ports.clock import epoch_ms
from .container import (
    closing_clients,
    container_for,
    metadata_log_at,
    require_stream_client,
    sink_container_for,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..adapters.prometheus import PrometheusCheckpointExporter
    from ..application.checkpoints.logs import CheckpointLogs, CheckpointState
    from ..application.checkpoints.offsets import OffsetCheckpoint, OffsetTargets
    from ..application.cluster.doctor import Doctor, Resources
    from ..application.lag.meter import LagMeter
    from ..application.lag.monitor import CheckpointWatch, LagMonitor
    from ..application.letters.dead_letter_log import DeadLetterLog, LetterCounter, LetterReplay
    from ..application.reading.record_tail import RecordTail
    from ..domain.checkpoints.entries import SinkLogEntry
    from ..domain.checkpoints.storage_path import StoragePath
    from ..domain.options.source import SourceOptions

_MAX_CONNECT_S: Final = 5.0


@contextmanager
def lag_meter_for(options: SourceOptions) -> Iterator[LagMeter]:
    """Yield a lag meter."""
    with closing_clients(container_for(options)) as container:
        yield container.lag_meter()


@contextmanager
def lag_monitor_for(
    options: SourceOptions, checkpoint: StoragePath, max_counted: int
) -> Iterator[LagMonitor]:
    """Yield a monitor of the lag behind a query's checkpoint.

    Records are counted in partitions with at most ``max_counted`` offsets left.
    """
    from ..application.lag.monitor import LagMonitor

    with closing_clients(container_for(options)) as container:
        meter = container.lag_meter(max_counted=max_counted)
        yield LagMonitor(_logs_of(checkpoint), meter, container.clock())


@contextmanager
def checkpoint_watch_for(
    options: SourceOptions,
    checkpoints: Mapping[str, StoragePath],
    max_counted: int,
    timeout_seconds: float,
) -> Iterator[CheckpointWatch]:
    """Yield a watch of the lag behind checkpoints; the rest is as in ``lag_monitor_for``."""
    from ..adapters.checkpoints.files import stored_query_id
    from ..application.lag.monitor import CheckpointWatch, WatchedCheckpoint

    watched = [
        WatchedCheckpoint(
            name,
            partial(lag_monitor_for, options, path, max_counted),
            partial(stored_query_id, path),
        )
        for name, path in checkpoints.items()
    ]
    with closing(CheckpointWatch(watched, timeout_seconds)) as watch:
        yield watch


@contextmanager
def checkpoint_exporter_at(
    host: str, port: int
) -> Iterator[tuple[PrometheusCheckpointExporter, str]]:
    """Yield an exporter of reports that an HTTP server serves, and the URL.

    :raises MissingDependencyError: if prometheus-client is not installed.
    :raises OSError: if the address cannot be used.
    """
    from ..adapters.prometheus import PrometheusCheckpointExporter, new_registry, serving

    registry = new_registry()
    exporter = PrometheusCheckpointExporter(registry)
    with serving(registry, host, port) as url:
        yield exporter, url


def checkpoint_state(checkpoint: StoragePath) -> CheckpointState:
    """Return the last batches of a checkpoint.

    :raises MetadataLogError: if the storage fails, or a file is malformed.
    """
    return _logs_of(checkpoint).state()


def offset_checkpoint_at(checkpoint: StoragePath) -> OffsetCheckpoint:
    """Return the offsets of a query's checkpoint."""
    from ..application.checkpoints.offsets import OffsetCheckpoint
    from ..domain.checkpoints.offset_rewrite import BACKUPS

    offsets, commits, backups = (
        metadata_log_at(checkpoint.child(name)) for name in ("offsets", "commits", BACKUPS)
    )
    return OffsetCheckpoint(offsets, commits, backups, epoch_ms)


@contextmanager
def offset_targets_for(options: SourceOptions) -> Iterator[OffsetTargets]:
    """Yield the resolver of offsets in Kafka."""
    from ..application.checkpoints.offsets import OffsetTargets

    with closing_clients(container_for(options)) as container:
        yield OffsetTargets(container.offset_reader())


def sink_entry(checkpoint: StoragePath) -> SinkLogEntry | None:
    """Return the newest entry of the sink's log in a checkpoint; ``None`` if there is none.

    :raises MetadataLogError: if the storage fails, or the file is malformed.
    """
    from ..application.checkpoints.logs import newest_entry
    from ..domain.checkpoints.entries import SINK_LOG, SinkLogEntry
    from ..domain.options.sink import sink_log_path

    log = metadata_log_at(sink_log_path(checkpoint).child(SINK_LOG))
    newest = newest_entry(log, SinkLogEntry.from_bytes)
    return newest and newest[1]


@contextmanager
def record_tail_for(options: SourceOptions) -> Iterator[RecordTail]:
    """Yield the reader of a topic's records as they arrive. It writes no dead letters.

    :raises OptionsError: if values cannot be decoded with the options.
    """
    from ..application.reading.record_tail import RecordTail
    from ..domain.continuous.settings import ContinuousSettings

    options = replace(options, dead_letter_topic=None)
    with closing_clients(container_for(options)) as container:
        typed = None
        if options.values:
            schema = container.value_schemas().resolve()
            typed = container.typed_records(schema)
            options = replace(options, projection=typed.projection)
        make_client = require_stream_client(container.client(), options, None)
        with closing(make_client(options, None, ContinuousSettings(""))) as client:
            yield RecordTail(
                container.offset_fetcher(),
                client,
                container.range_read(),
                options.projection,
                typed,
            )


@contextmanager
def dead_letter_log_for(options: SourceOptions, topic: str) -> Iterator[DeadLetterLog]:
    """Yield the log of a dead-letter topic."""
    from ..application.letters.dead_letter_log import DeadLetterLog

    with closing_clients(container_for(options)) as container:
        yield DeadLetterLog(container.offset_fetcher(), container.range_read, topic)


@contextmanager
def letter_counter_for(options: SourceOptions, topic: str) -> Iterator[LetterCounter]:
    """Yield a counter of the letters in a topic."""
    from ..adapters.system.clock import SystemClock
    from ..application.letters.dead_letter_log import LetterCounter

    with dead_letter_log_for(options, topic) as log:
        yield LetterCounter(log, SystemClock())


@contextmanager
def letter_replay_for(
    options: SourceOptions, topic: str | None, *, is_dry: bool = False
) -> Iterator[LetterReplay]:
    """Yield the writer that puts records back: into ``topic``, or into their own topics.

    :raises OptionsError: if the client cannot write.
    """
    from ..application.letters.dead_letter_log import LetterReplay

    with ExitStack() as stack:
        writer = None
        if not is_dry:
            made = sink_container_for(dead_letter_sink(options, topic))
            writer = stack.enter_context(closing_clients(made)).record_writer()
        yield LetterReplay(writer, topic)


@contextmanager
def doctor_for(
    options: SourceOptions, resources: Resources, java: Callable[[], str]
) -> Iterator[Doctor]:
    """Yield the doctor of a cluster.

    ``java`` returns the path of a Java for Spark, or raises.

    :raises OptionsError: if a bootstrap server is not ``host:port``.
    """
    from ..adapters.system.diagnostics import NetworkProbe, environment
    from ..application.cluster.doctor import Doctor, Surroundings
    from ..domain.options.client_settings import server_problems

    if problems := server_problems(options.bootstrap_servers):
        raise OptionsError(problems)
    timeout_s = min(options.java.timeout_ms / 1_000, _MAX_CONNECT_S)
    with closing_clients(container_for(options)) as container:
        surroundings = Surroundings(
            environment(),
            NetworkProbe(options.java, timeout_s),
            container.clock(),
            java,
            lambda: container.rack_finder().find(),
        )
        yield Doctor(options, resources, surroundings, container.cluster_describer)


def _logs_of(path: StoragePath) -> CheckpointLogs:
    from ..application.checkpoints.logs import CheckpointLogs

    return CheckpointLogs(*(metadata_log_at(path.child(name)) for name in ("offsets", "commits")))
