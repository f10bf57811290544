"""The lag behind checkpoints for Prometheus."""

from __future__ import annotations

from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ..adapters.prometheus.checkpoint_exporter import PrometheusCheckpointExporter
from ..adapters.prometheus.http_server import new_registry, serving
from ..adapters.storage.stream_metadata import stored_query_id
from ..application.lag.checkpoint_lag import CheckpointWatch, WatchedCheckpoint
from .lag import lag_monitor_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..domain.checkpoints.storage_path import StoragePath
    from ..domain.options.source import SourceOptions


@contextmanager
def checkpoint_watch_for(
    options: SourceOptions,
    checkpoints: Mapping[str, StoragePath],
    max_counted: int,
    timeout_seconds: float,
) -> Iterator[CheckpointWatch]:
    """Yield what measures the lag behind checkpoints, and close its clients afterwards.

    Records are counted in partitions with at most ``max_counted`` offsets left.
    """
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
    registry = new_registry()
    exporter = PrometheusCheckpointExporter(registry)
    with serving(registry, host, port) as url:
        yield exporter, url
