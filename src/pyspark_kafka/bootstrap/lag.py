"""The lag of streaming queries: meters, and monitors of checkpoints."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..application.checkpoints.logs import QueryCheckpoint
from ..application.lag.monitor import LagMonitor
from .container import closing_clients, container_for, metadata_log_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..application.lag.meter import LagMeter
    from ..domain.checkpoints.storage_path import StoragePath
    from ..domain.options.source import SourceOptions


@contextmanager
def lag_meter_for(options: SourceOptions) -> Iterator[LagMeter]:
    """Yield a lag meter, and close its clients afterwards; raise as ``container_for`` does."""
    with closing_clients(container_for(options)) as container:
        yield container.lag_meter()


@contextmanager
def lag_monitor_for(
    options: SourceOptions, checkpoint: StoragePath, max_counted: int
) -> Iterator[LagMonitor]:
    """Yield a monitor of the lag behind a query's checkpoint, and close its clients afterwards.

    Records are counted in partitions with at most ``max_counted`` offsets left.

    :raises OptionsError: if the value of the option ``client`` is unknown.
    :raises UnsupportedFeatureError: if checkpoints cannot be read from such a storage.
    """
    logs = (metadata_log_at(checkpoint.child(name)) for name in ("offsets", "commits"))
    with closing_clients(container_for(options)) as container:
        meter = container.lag_meter(max_counted=max_counted)
        yield LagMonitor(QueryCheckpoint(*logs), meter, container.clock())
