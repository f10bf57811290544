"""The offsets of checkpoints, and in Kafka."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..adapters.storage.fsspec_metadata_log import FsspecMetadataLog
from ..application.checkpoints.logs import QueryCheckpoint
from ..application.checkpoints.offsets import BACKUPS, OffsetCheckpoint, OffsetTargets
from ..domain.checkpoints.entries import SINK_LOG, SinkLogEntry
from ..domain.errors import MetadataLogError
from ..domain.options.sink import sink_log_path
from ..ports.clock import epoch_ms
from .container import closing_clients, container_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..application.checkpoints.logs import CheckpointState
    from ..domain.checkpoints.storage_path import StoragePath
    from ..domain.options.source import SourceOptions


def offset_checkpoint_at(checkpoint: StoragePath) -> OffsetCheckpoint:
    """Return the offsets of a query's checkpoint.

    :raises UnsupportedFeatureError: if its storage cannot arbitrate between concurrent writers.
    """
    offsets, commits, backups = (
        FsspecMetadataLog(checkpoint.child(name)) for name in ("offsets", "commits", BACKUPS)
    )
    return OffsetCheckpoint(offsets, commits, backups, epoch_ms)


def checkpoint_state(checkpoint: StoragePath) -> CheckpointState:
    """Return the last batches of a checkpoint.

    :raises UnsupportedFeatureError: if checkpoints cannot be read from such a storage.
    :raises MetadataLogError: if the storage fails, or a file is malformed.
    """
    logs = (FsspecMetadataLog(checkpoint.child(name)) for name in ("offsets", "commits"))
    return QueryCheckpoint(*logs).state()


def sink_entry(checkpoint: StoragePath) -> SinkLogEntry | None:
    """Return the newest entry of the sink's log in a checkpoint; ``None`` if there is none.

    :raises MetadataLogError: if the storage fails, or the file is malformed.
    """
    log = FsspecMetadataLog(sink_log_path(checkpoint).child(SINK_LOG))
    latest = log.latest()
    try:
        return latest and SinkLogEntry.from_bytes(latest[1])
    except ValueError as error:
        raise MetadataLogError(str(log), str(error)) from error


@contextmanager
def offset_targets_for(options: SourceOptions) -> Iterator[OffsetTargets]:
    """Yield what resolves offsets in Kafka, and close its clients afterwards.

    :raises OptionsError: if the value of the option ``client`` is unknown.
    """
    with closing_clients(container_for(options)) as container:
        yield OffsetTargets(container.offset_reader())
