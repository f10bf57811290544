"""How far a query is, by what its checkpoint says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ..domain.checkpoint_log import CheckpointedBatch, read_batch
from ..domain.errors import MetadataLogError

if TYPE_CHECKING:
    from ..ports.metadata_log import MetadataLog

_ATTEMPTS: Final = 3


@final
@dataclass(frozen=True, slots=True)
class CheckpointState:
    """The newest batch that is committed, and the one that was begun after it, if any."""

    committed: CheckpointedBatch | None = None
    in_flight: CheckpointedBatch | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is no batch at all, as where there is no checkpoint."""
        return self.committed is None and self.in_flight is None

    @property
    def offsets_in_flight(self) -> int:
        """How many offsets the batch in flight spans in partitions that are known before it."""
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
    """Reads a query's checkpoint while the query goes on writing it. It writes nothing."""

    def __init__(self, offsets: MetadataLog, commits: MetadataLog) -> None:
        """Take the logs of the checkpoint's directories of these names."""
        self._offsets = offsets
        self._commits = commits

    def state(self) -> CheckpointState:
        """Read how far the query is.

        :raises MetadataLogError: if the storage fails, or a file is not what Spark writes.
        """
        for _ in range(_ATTEMPTS):
            # Commits are listed first: a batch that is committed in between counts as in flight.
            commits = set(self._commits.batch_ids())
            begun = set(self._offsets.batch_ids())
            committed = self._read(max(commits & begun, default=None))
            in_flight = self._read(max(begun - commits, default=None))
            # Between listing and reading, Spark may remove a file that is old by then.
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
