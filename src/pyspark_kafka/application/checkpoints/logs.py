"""The two logs of a query's checkpoint."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar, final

from ...domain.checkpoints.checkpoint_log import CheckpointedBatch, read_batch, read_batch_end
from ...domain.errors import Fault, MetadataLogError, NoCheckpointError, Recovery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...domain.partition_offsets import PartitionOffsets
    from ...ports.checkpoints import MetadataLog

T = TypeVar("T")

log = logging.getLogger("pyspark_kafka")

_ATTEMPTS: Final = 3


@contextmanager
def parsing(log: object) -> Iterator[None]:
    """Raise the ``ValueError`` of a parser as a ``MetadataLogError`` that names the log."""
    try:
        yield
    except ValueError as error:
        raise MetadataLogError(str(log), str(error)) from error


def newest_entry(log: MetadataLog, parse: Callable[[bytes], T]) -> tuple[int, T] | None:
    """Return the number and the value of the last entry; ``None`` if the log is empty.

    :raises MetadataLogError: if the log cannot be read, or the entry is malformed.
    """
    latest = log.latest()
    if latest is None:
        return None
    with parsing(log):
        return latest[0], parse(latest[1])


def purge(threshold: int, *logs: MetadataLog) -> None:
    """Delete entries that nobody needs; if that fails, the next call deletes them."""
    try:
        for each in logs:
            each.purge(threshold)
    except MetadataLogError as error:
        log.warning("Old entries were not deleted, which is tried again later: %s", error)


class ConcurrentUpdateError(MetadataLogError):
    """Another query writes to the same log."""

    condition = "CONCURRENT_STREAM_LOG_UPDATE"
    fault = Fault.USER
    recovery = Recovery.FATAL

    def __init__(self, log: MetadataLog, number: int) -> None:
        # The words of CONCURRENT_STREAM_LOG_UPDATE in Spark's error-conditions.json.
        super().__init__(
            str(log),
            f"Concurrent update to the log. Multiple streaming jobs detected for {number}. Please "
            "make sure only one streaming job runs on a specific checkpoint location at a time",
        )


@final
@dataclass(frozen=True, slots=True)
class CheckpointState:
    """The last committed batch, and the one after it, if it was started."""

    committed: CheckpointedBatch | None = None
    in_flight: CheckpointedBatch | None = None

    def require_batch(self, path: str) -> None:
        """Check that there is a batch: a path without a checkpoint has none.

        :raises NoCheckpointError: if there is none.
        """
        if self.committed is None and self.in_flight is None:
            raise NoCheckpointError(
                path,
                "There is no checkpoint of a streaming query, or its first batch has not begun. "
                "Check that it is the query's checkpointLocation",
            )

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


def require_related(offset_log: MetadataLog, planned: int, committed: int) -> None:
    """Check the last batches of two logs; -1 stands for none.

    :raises MetadataLogError: if the logs are not of one query.
    """
    if planned - committed not in {0, 1}:
        raise MetadataLogError(
            str(offset_log),
            f"Batch {planned} was planned last, but batch {committed} was committed last: the logs "
            "belong to different queries. Use both logs of one query",
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class CheckpointLogs:
    """The logs in the directories ``offsets`` and ``commits`` of a checkpoint."""

    offsets: MetadataLog
    commits: MetadataLog

    def last(self) -> tuple[int, int]:
        """Return the last planned batch and the last committed one, -1 if there is none.

        :raises MetadataLogError: if a log cannot be read, or they are not of one query.
        """
        planned, committed = self.offsets.latest(), self.commits.latest()
        numbers = planned[0] if planned else -1, committed[0] if committed else -1
        require_related(self.offsets, *numbers)
        return numbers

    def end(self, number: int) -> PartitionOffsets:
        """Return the end of a batch.

        :raises MetadataLogError: if its file is missing or malformed, or has several sources.
        """
        content = self.offsets.get(number)
        if content is None:
            problem = f"Batch {number} is missing. Restore its file, or start with new logs"
            raise MetadataLogError(str(self.offsets), problem)
        with parsing(self.offsets):
            return read_batch_end(content)

    def purge(self, threshold: int) -> None:
        """Delete the batches below a positive ``threshold``."""
        if threshold > 0:
            purge(threshold, self.offsets, self.commits)

    def state(self) -> CheckpointState:
        """Return the current state of a query that may be running.

        :raises MetadataLogError: if the storage fails, or a file is malformed.
        """
        for _ in range(_ATTEMPTS):
            # List commits first: a batch that is committed in between counts as in flight.
            commits = set(self.commits.batch_ids())
            begun = set(self.offsets.batch_ids())
            committed = self._read(max(commits & begun, default=None))
            in_flight = self._read(max(begun - commits, default=None))
            # Between listing and reading, Spark may purge the file.
            if committed or not commits:
                break
        if committed and in_flight and in_flight.batch_id < committed.batch_id:
            in_flight = None
        return CheckpointState(committed, in_flight)

    def _read(self, batch_id: int | None) -> CheckpointedBatch | None:
        content = None if batch_id is None else self.offsets.get(batch_id)
        if batch_id is None or content is None:
            return None
        with parsing(f"{self.offsets}/{batch_id}"):
            return read_batch(batch_id, content)
