"""The two logs of a query's checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ...domain.checkpoints.checkpoint_log import CheckpointedBatch, read_batch, read_batch_end
from ...domain.errors import Fault, MetadataLogError

if TYPE_CHECKING:
    from ...domain.partition_offsets import PartitionOffsets
    from ...ports.checkpoints import MetadataLog


def end_of_batch(offset_log: MetadataLog, number: int) -> PartitionOffsets:
    """Return the end of a batch.

    :raises MetadataLogError: if its file is missing or malformed, or has several sources.
    """
    content = offset_log.get(number)
    if content is None:
        raise MetadataLogError(
            str(offset_log),
            f"Batch {number} is missing. Restore its file, or start with new logs",
        )
    try:
        return read_batch_end(content)
    except ValueError as error:
        raise MetadataLogError(str(offset_log), str(error)) from error


class ConcurrentUpdateError(MetadataLogError):
    """Another query writes to the same log."""

    condition = "CONCURRENT_STREAM_LOG_UPDATE"
    fault = Fault.USER

    def __init__(self, log: MetadataLog, number: int) -> None:
        # The words of CONCURRENT_STREAM_LOG_UPDATE in Spark's error-conditions.json.
        super().__init__(
            str(log),
            f"Concurrent update to the log. Multiple streaming jobs detected for {number}. Please "
            "make sure only one streaming job runs on a specific checkpoint location at a time",
        )


def unrelated_logs(offset_log: MetadataLog, number: int, committed: int) -> MetadataLogError:
    """Return the error for logs that are not of one query."""
    return MetadataLogError(
        str(offset_log),
        f"Batch {number} was planned last, but batch {committed} was committed last: the logs "
        "belong to different queries. Use both logs of one query",
    )


_ATTEMPTS: Final = 3


def no_checkpoint(path: str) -> MetadataLogError:
    """Return the error of a path at which a query has left no batch."""
    return MetadataLogError(
        path,
        "There is no checkpoint of a streaming query, or its first batch has not begun. Check that "
        "it is the query's checkpointLocation",
    )


@final
@dataclass(frozen=True, slots=True)
class CheckpointState:
    """The last committed batch, and the one after it, if it was started."""

    committed: CheckpointedBatch | None = None
    in_flight: CheckpointedBatch | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is no batch, such as without a checkpoint."""
        return self.committed is None and self.in_flight is None

    @property
    def offsets_in_flight(self) -> int:
        """The number of offsets in the batch in flight, except in new partitions."""
        if self.committed is None or self.in_flight is None:
            return 0
        known = self.committed.offsets
        return sum(
            max(0, offset - known[source][partition])
            for source, offsets in self.in_flight.offsets.items()
            if source in known
            for partition, offset in offsets.items()
            if partition in known[source]
        )


@final
class QueryCheckpoint:
    """Reads the checkpoint of a query that may be running. It writes nothing."""

    def __init__(self, offsets: MetadataLog, commits: MetadataLog) -> None:
        """Take the logs of the checkpoint's directories ``offsets`` and ``commits``."""
        self._offsets = offsets
        self._commits = commits

    def state(self) -> CheckpointState:
        """Return the current state.

        :raises MetadataLogError: if the storage fails, or a file is malformed.
        """
        for _ in range(_ATTEMPTS):
            # List commits first: a batch that is committed in between counts as in flight.
            commits = set(self._commits.batch_ids())
            begun = set(self._offsets.batch_ids())
            committed = self._read(max(commits & begun, default=None))
            in_flight = self._read(max(begun - commits, default=None))
            # Between listing and reading, Spark may purge the file.
            if committed or not commits:
                break
        if committed and in_flight and in_flight.batch_id < committed.batch_id:
            in_flight = None
        return CheckpointState(committed, in_flight)

    def _read(self, batch_id: int | None) -> CheckpointedBatch | None:
        content = None if batch_id is None else self._offsets.get(batch_id)
        if batch_id is None or content is None:
            return None
        try:
            return read_batch(batch_id, content)
        except ValueError as error:
            raise MetadataLogError(f"{self._offsets}/{batch_id}", str(error)) from error
