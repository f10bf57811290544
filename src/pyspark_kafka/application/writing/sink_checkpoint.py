"""The checkpoint of the query that an exactly-once sink belongs to."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final, final

from ...domain.checkpoints.checkpoint_log import (
    CONTINUOUS_GROUP,
    read_batch_conf,
    read_batch_end,
)
from ...domain.checkpoints.offset_rewrite import Backup, ResumePoint
from ...domain.errors import MetadataLogError, PysparkKafkaError
from ..checkpoints.logs import ConcurrentUpdateError, parsing

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.partition_offsets import PartitionOffsets
    from ...domain.topic_partition import TopicPartition
    from ...ports.checkpoints import MetadataLog

_PLANNED: Final = (
    "After 'pyspark-kafka offsets undo', run 'pyspark-kafka offsets rewrite' with the offsets where"
    " the query is to resume. Or delete the sink's log: then the batch is written as it is planned "
    "now, and its records may be in Kafka twice"
)
_FINISHED: Final = (
    "The batch is finished in this checkpoint: what it has now and had not then is not in Kafka. "
    "Or run 'pyspark-kafka offsets rewrite' with the offsets up to which Kafka has the records, "
    "and then delete the sink's log"
)
"""Advice about a batch that was written with other offsets, if it is the last one or not."""


@final
@dataclass(frozen=True, slots=True)
class LastBatch:
    """The last batch in the offset log, the digest of its file, and the query's id.

    Each is ``None`` where it cannot be read.
    """

    batch_id: int | None = None
    digest: str | None = None
    query_id: str | None = None


@final
class SinkCheckpoint:
    """Reads the checkpoint's offset log, which may be out of the driver's reach."""

    def __init__(
        self,
        offsets: MetadataLog | None,
        backups: MetadataLog | None,
        query_id: Callable[[], str | None],
        *,
        has_sink_log: bool,
    ) -> None:
        """Take the offset log and the backups of ``pyspark-kafka offsets``, ``None`` if unknown.

        If the sink's log is in the checkpoint, the offset log must not be empty: else this is not
        the checkpoint's storage. ``query_id`` returns the checkpoint's, ``None`` or an error if
        that is at another place.
        """
        self._offsets = offsets
        self._backups = backups
        self._query_id = query_id
        self._has_sink_log = has_sink_log

    def __str__(self) -> str:
        return str(self._offsets)

    def last(self, *, is_readable: bool = False) -> LastBatch:
        """Return the last planned batch.

        :raises MetadataLogError: if the log must be readable and is not.
        """
        if self._offsets is None:
            return LastBatch(query_id=self._query_id())
        # A driver that cannot read the checkpoint has a log elsewhere.
        with suppress(*self._tolerated(is_readable)):
            if (found := self._offsets.latest()) is not None:
                return LastBatch(found[0], _digest(found[1]), self._query_id())
        if self._has_sink_log:
            raise MetadataLogError(
                str(self._offsets),
                "This process does not find the checkpoint's offset log. Set the option "
                "'metadataPath' to a path that every driver of this query can reach",
            )
        return LastBatch()

    def require_newest(self, batch_id: int) -> None:
        """Raise if a batch is no longer the last planned one, as far as it can be read.

        :raises MetadataLogError: if another query has continued, or the log cannot be read.
        """
        latest = None if self._offsets is None else self._offsets.latest()
        if self._offsets is not None and latest is not None and latest[0] != batch_id:
            raise ConcurrentUpdateError(self._offsets, latest[0])

    def ends(self, batch_id: int) -> tuple[PartitionOffsets, PartitionOffsets] | None:
        """Return where the batch before and a batch end; ``None`` if one of them has no file."""
        with parsing(self._offsets):
            return self._ends(batch_id)

    def added(self, batch_id: int) -> frozenset[TopicPartition]:
        """Return the partitions that a batch has and the batch before it lacks.

        There are none if a file is missing, or is not of a query with one Kafka source.
        """
        with suppress(ValueError):
            ends = self._ends(batch_id)
            return frozenset(ends[1].keys() - ends[0].keys() if ends is not None else ())
        return frozenset()

    def _ends(self, batch_id: int) -> tuple[PartitionOffsets, PartitionOffsets] | None:
        if self._offsets is None:
            return None
        before, content = self._offsets.get(batch_id - 1), self._offsets.get(batch_id)
        if before is None or content is None:
            return None
        return read_batch_end(before), read_batch_end(content)

    def continuous_group(self, epoch: int) -> str | None:
        """Return the group of the exactly-once continuous query that wrote an epoch, if one did."""
        content = None if self._offsets is None else self._offsets.get(epoch)
        # Malformed, or of a later version: not a continuous query's.
        with suppress(ValueError):
            return read_batch_conf(content or b"").get(CONTINUOUS_GROUP)
        return None

    def is_epoch(self, batch_id: int) -> bool:
        """Return whether an exactly-once continuous query has written a batch's file.

        What ``pyspark-kafka offsets rewrite`` plans may be a copy of such a file.
        """
        if self._offsets is None or self.continuous_group(batch_id) is None:
            return False
        return self._offsets.get(batch_id) != self._offsets.get(batch_id - 1)

    def last_continuous_group(self, before: int) -> str | None:
        """Return the group of the last such query that wrote an epoch before a batch, if known."""
        numbers = () if self._offsets is None else self._offsets.batch_ids()
        earlier = sorted((each for each in numbers if each < before), reverse=True)
        return next(filter(None, map(self.continuous_group, earlier)), None)

    def digest(self, batch_id: int, *, is_readable: bool) -> str | None:
        """Return the digest of a batch's file; ``None`` where it cannot be read."""
        if self._offsets is None:
            return None
        with suppress(*self._tolerated(is_readable)):
            content = self._offsets.get(batch_id)
            return None if content is None else _digest(content)
        return None

    def require_written(self, batch_id: int, digest: str, planned: int, entry: str) -> None:
        """Raise if a decided batch has other offsets now than those it was written with.

        ``pyspark-kafka offsets`` may have changed them on purpose. Then the batch must be committed
        in the checkpoint, too, or have no records now: its tasks would write none.

        :raises MetadataLogError: that names the sink log's ``entry``.
        """
        content = None if self._offsets is None else self._offsets.get(batch_id)
        if content is None or _digest(content) == digest:
            return
        is_skipped = planned > batch_id or self._is_empty(batch_id, content)
        if is_skipped and {digest, _digest(content)} <= self._rewritten(batch_id):
            return
        raise MetadataLogError(
            entry,
            f"Batch {batch_id} was written with other offsets than those in the checkpoint, "
            f"'{self._offsets}/{batch_id}': the checkpoint was restored or changed since. What the "
            "batch had then is in Kafka. Restore a checkpoint that has the former file "
            f"'offsets/{batch_id}'. {_FINISHED if planned > batch_id else _PLANNED}",
        )

    def _is_empty(self, batch_id: int, content: bytes) -> bool:
        before = None if self._offsets is None else self._offsets.get(batch_id - 1)
        if before is None:
            return False
        with parsing(self._offsets):
            return not ResumePoint(batch_id - 1, before, content).has_unread_batch

    def _rewritten(self, batch_id: int) -> set[str]:
        """Return the digests of what a batch's file was before and after each rewrite."""
        if self._backups is None:
            return set()
        contents = [self._backups.get(number) for number in self._backups.batch_ids()]
        with parsing(self._backups):
            found = [Backup.from_bytes(each) for each in contents if each is not None]
        files = (
            point.file(batch_id) for backup in found for point in (backup.before, backup.after)
        )
        return {_digest(content) for content in files if content is not None}

    def _tolerated(self, is_readable: bool) -> tuple[type[PysparkKafkaError], ...]:
        """Return the errors of an offset log that may be out of the driver's reach.

        An error that passes must not make a batch one that cannot be compared.
        """
        return () if is_readable or self._has_sink_log else (PysparkKafkaError,)


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()
