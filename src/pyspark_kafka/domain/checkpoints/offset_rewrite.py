"""Changing the offsets at which a stopped query resumes.

Spark resumes at the end of the last committed batch, which its file in the offset log holds. A
batch that is planned and not committed runs again first, from that end to its own. So a rewrite
changes one file, atomically, while no batch is planned, and then plans a batch without records:

1. The planned batch, if there is one, is removed: nothing of it is committed.
2. The file of the committed batch is replaced. The old offsets count until then, the new ones
   afterwards.
3. A batch that ends where it starts is planned. Its id is the next one: a query that still runs
   fails when it plans this batch itself, and a sink that has already written the removed batch
   skips only the one without records.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from ..json_text import is_integer, read_json
from ..partition_offsets import PartitionOffsets
from .checkpoint_log import read_batch, source_lines, with_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .checkpoint_log import CheckpointedBatch

_NONE: Final = PartitionOffsets()

BACKUPS: Final = "pyspark_kafka_offset_backups"
"""The directory of backups in a checkpoint, next to Spark's directories."""

RECENT_MS: Final = 60_000
"""A query whose last batch began less than this ago may be running."""


@final
@dataclass(frozen=True, slots=True)
class ResumePoint:
    """The two files of the offset log that determine where a query resumes.

    ``planned`` is the file of the batch after the committed one, if there is one.
    """

    batch_id: int
    committed: bytes
    planned: bytes | None = None

    @property
    def committed_batch(self) -> CheckpointedBatch:
        """The last committed batch; raises as ``read_batch``."""
        return read_batch(self.batch_id, self.committed)

    @property
    def planned_batch(self) -> CheckpointedBatch | None:
        """The planned batch; raises as ``read_batch``."""
        return None if self.planned is None else read_batch(self.batch_id + 1, self.planned)

    @property
    def offsets(self) -> Mapping[str, PartitionOffsets]:
        """The offsets of the Kafka sources, by their names; raises as ``read_batch``."""
        return self.committed_batch.offsets

    @property
    def has_unread_batch(self) -> bool:
        """Whether a batch is planned that has records of Kafka; raises as ``read_batch``."""
        planned = self.planned_batch
        return planned is not None and planned.offsets != self.offsets

    def file(self, batch_id: int) -> bytes | None:
        """Return the content of a batch's file, ``None`` if this point has none."""
        files = {self.batch_id: self.committed, self.batch_id + 1: self.planned}
        return files.get(batch_id)

    def check(self) -> None:
        """Raise ``ValueError`` if a file is malformed."""
        read_batch(self.batch_id, self.committed)
        if self.planned is not None:
            read_batch(self.batch_id + 1, self.planned)

    def moved_to(self, targets: Mapping[str, PartitionOffsets]) -> ResumePoint:
        """Return the point with the offsets of ``targets``, and a batch that has no records.

        ``targets`` are by source. Other partitions keep their offsets. Sources and partitions that
        the committed batch does not have are ignored.

        :raises ValueError: if a file is malformed.
        """
        moved = {
            source: offsets.merge(targets.get(source, _NONE).restrict(offsets))
            for source, offsets in self.offsets.items()
        }
        committed = with_offsets(self.committed, moved)
        planned = committed if self.planned is None else with_offsets(self.planned, moved)
        if source_lines(planned) == source_lines(committed):
            planned = committed
        return ResumePoint(self.batch_id, committed, planned)

    def may_be(self, before: ResumePoint, after: ResumePoint) -> bool:
        """Whether a rewrite from one point to another, complete or not, has left this one."""
        return (
            self.batch_id == before.batch_id
            and self.committed in {before.committed, after.committed}
            and self.planned in {None, before.planned, after.planned}
        )


@final
@dataclass(frozen=True, slots=True)
class Backup:
    """An entry of the log of backups: a rewrite, or the undoing of another entry's rewrite.

    ``time_ms`` is in milliseconds since the epoch.
    """

    time_ms: int
    before: ResumePoint
    after: ResumePoint
    undoes: int | None = None

    def to_bytes(self) -> bytes:
        """Return the content of the entry."""
        content = {
            "timestamp": self.time_ms,
            "undoes": self.undoes,
            "before": _to_dict(self.before),
            "after": _to_dict(self.after),
        }
        return json.dumps(content, ensure_ascii=False, indent=1).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Backup:
        """Parse the content of an entry.

        :raises ValueError: if it is malformed.
        """
        try:
            found = read_json(content)
            points = _point(found["before"]), _point(found["after"])
            undoes = found["undoes"]
            number = None if undoes is None else _integer(undoes)
            return cls(_integer(found["timestamp"]), *points, number)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError("the file is no backup of offsets, or is damaged") from error


def rewrite_to_undo(entries: Mapping[int, Backup]) -> int | None:
    """Return the number of the last rewrite that is not undone."""
    undone = {entry.undoes for entry in entries.values()}
    left = [n for n, entry in entries.items() if entry.undoes is None and n not in undone]
    return max(left, default=None)


def sign_of_life(point: ResumePoint, now_ms: int) -> str | None:
    """Return a sign that a query runs on a checkpoint, ``None`` if there is none.

    :raises ValueError: if a file is malformed.
    """
    # A batch without records of Kafka may have those of another source, or move a watermark. What a
    # rewrite plans is a copy.
    if point.planned not in {None, point.committed}:
        return (
            f"batch {point.batch_id + 1} is planned and not committed: the query runs it, or was "
            "stopped while it ran"
        )
    begun = point.committed_batch.timestamp_ms
    if begun is None or now_ms - begun >= RECENT_MS:
        return None
    return f"batch {point.batch_id} began {max(0, now_ms - begun) // 1_000} seconds ago"


def _to_dict(point: ResumePoint) -> dict[str, Any]:
    return {
        "batchId": point.batch_id,
        "committed": point.committed.decode(),
        "planned": None if point.planned is None else point.planned.decode(),
    }


def _point(found: dict[str, Any]) -> ResumePoint:
    committed, planned = found["committed"], found["planned"]
    point = ResumePoint(
        _integer(found["batchId"]),
        committed.encode(),
        None if planned is None else planned.encode(),
    )
    point.check()  # it may be written to a checkpoint
    return point


def _integer(value: object) -> int:
    if not is_integer(value) or value < 0:
        raise ValueError(f"not a number of a batch or a time: {value!r}")
    return value
