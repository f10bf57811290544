"""The promises of the source that hold over the whole life of a query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..engine.outcome import ViolationError
from . import losses, model
from .losses import Loss, names
from .query import COMMITTED

if TYPE_CHECKING:
    from .checkpoint import Checkpoint
    from .kafka import Log
    from .query import Bound, Offsets, Query
    from .world import World


class Oracle:
    """Knows what was delivered and lost."""

    def __init__(self, world: World, checkpoint: Checkpoint) -> None:
        self.world = world
        self.checkpoint = checkpoint
        self.delivered: Counter[bytes] = Counter()
        """How often a value came in a committed batch."""
        self.lost: list[Loss] = []
        self.first: Offsets | None = None
        """Where the first batch starts, if its end is logged."""
        self.first_bound: Bound | None = None
        """The option that led there."""

    def was_replaced(self, part: TopicPartition) -> bool:
        """Return whether a partition is gone, or was created while the query ran."""
        is_new = part.topic in self.world.topics.created
        return is_new or self.world.kafka.topic_id(part) is None

    def check_loss(self, found: Iterable[Loss], *, failed: Query | None = None) -> None:
        """Check that what is reported as lost at this moment really is.

        ``failed`` is the query that the report ends; a late driver has former options.
        """
        found, is_error = list(found), failed is not None
        if failed is not None and not failed.fails_on_data_loss:
            raise ViolationError("an error although data may be lost", names(found))
        for loss in found:
            if not self._is_true(loss, is_error=is_error):
                raise ViolationError("a false report of a loss", str(loss))
        self.lost += [] if is_error else found

    def _is_true(self, loss: Loss, *, is_error: bool) -> bool:
        kafka, query = self.world.kafka, self.world.query
        part = loss.partition
        log = kafka.view(committed_only=query.committed_only).get(part)
        if log is None or self.was_replaced(part):
            return True
        held = range(max(loss.start, log.start), min(loss.end, log.end))
        is_given = loss.start == dict(query.start.each).get(part)
        is_moved = is_given or log.start > loss.end
        is_true = {
            losses.RANGE: loss.start not in held if is_error else not held,
            losses.ADDED: 0 < loss.end <= log.start,
            losses.CHANGED: loss.start > log.end or is_moved,
            losses.RESET: not log.start <= loss.start <= log.end,
            losses.UNKNOWN_START: (query.start.is_time and log.start > 0)
            or (query.start.every == COMMITTED and self._is_passed(part, log.end)),
        }
        return is_true.get(loss.condition, self.world.stale > 0)

    def _is_passed(self, part: TopicPartition, end: int) -> bool:
        """Return whether a log has passed a group's offset, and the first batch has not."""
        first = self.checkpoint.end(0) or {}
        return first.get(part, 0) < dict(self.world.query.start.each).get(part, 0) <= end

    def is_reported(self, part: TopicPartition, offset: int, found: Iterable[Loss]) -> bool:
        """Return whether a record may be missing by a report."""
        return any(
            loss.partition == part
            and (
                loss.start <= offset < loss.end
                if loss.condition in (losses.RANGE, losses.ADDED, losses.RESET)
                else True
            )
            for loss in found
        )

    def committed(self, values: Iterable[bytes]) -> None:
        """Take the rows of a batch that is committed."""
        for value in values:
            self.delivered[value] += 1
            written = self.world.kafka.written[value]
            # A query that was reported to be ahead of the log reads it again from there.
            is_reported = any(
                loss.partition == written.partition
                and (
                    loss.condition == losses.DELETED
                    or (loss.condition == losses.CHANGED and loss.end <= written.offset)
                )
                for loss in self.lost
            )
            if self.delivered[value] > 1 and not is_reported:
                raise ViolationError("a record comes twice", f"{self.name(value)}")

    def group_commits(self, offsets: PartitionOffsets) -> None:
        """Check that a group's offsets are those of committed batches, or the first start."""
        ends = [self.checkpoint.end(number) for number in sorted(self.checkpoint.commits)]
        if dict(offsets) in ends or not ends:
            return
        if self.first is not None and dict(offsets) == dict(self.first):
            return
        raise ViolationError("a group commits what is not processed", offsets.to_json())

    def finish(self) -> None:
        """Check that every record was delivered, or is reported."""
        kafka, query = self.world.kafka, self.world.query
        view = kafka.view(committed_only=query.committed_only)
        end = self.checkpoint.end(self.checkpoint.committed) or {}
        for part, until in end.items():
            log = view.get(part)
            if log is None or self.was_replaced(part):
                continue
            start = (self.first or {}).get(part, 0)
            if not query.keeps_start:
                start = self._first_again(part, log, start, until)
            for value in kafka.values.get((part, log.topic_id), ()):
                offset = kafka.written[value].offset
                if (
                    start <= offset < until
                    and not self.delivered[value]
                    and kafka.is_visible(value, committed_only=query.committed_only)
                    and not self.is_reported(part, offset, self.lost)
                    and not (not query.keeps_start and offset < log.start)
                ):
                    raise ViolationError("a record is missing", self.name(value))

    def check_rows(
        self,
        rows: Iterable[tuple[str, int, int, bytes]],
        start: Offsets,
        end: Offsets,
        ids: Mapping[TopicPartition, int | None],
        found: list[Loss],
        *,
        may_skip_deleted: bool,
    ) -> None:
        """Check that a batch has exactly the records between two offsets."""
        kafka, query = self.world.kafka, self.world.query
        # The options of a first batch lead elsewhere where people changed them or a topic was
        # created again, and to an earlier record if it came between the requests for a time and
        # for the latest offset.
        replaced = {part for part in end if may_skip_deleted and self.was_replaced(part)}
        is_certain = not (may_skip_deleted and (query.start.is_time or self._is_start_changed))
        least = {part: at for part, at in start.items() if is_certain and part not in replaced}
        values = self.values(rows, least, end)
        view = kafka.view(committed_only=query.committed_only)
        for part, until in end.items():
            log = view.get(part)
            if log is None or ids.get(part) != log.topic_id or part in replaced:
                continue
            first = start.get(part, 0)
            if may_skip_deleted:
                first = self._first_again(part, log, first, until)
            for value in kafka.values.get((part, log.topic_id), ()):
                offset = kafka.written[value].offset
                if (
                    first <= offset < until
                    and value not in values
                    and kafka.is_visible(value, committed_only=query.committed_only)
                    and not self.is_reported(part, offset, found)
                    and not (may_skip_deleted and offset < log.start)
                ):
                    raise ViolationError("a batch lacks a record", self.name(value))

    @property
    def _is_start_changed(self) -> bool:
        return self.world.query.start != self.first_bound

    def _was_reset(self, part: TopicPartition) -> bool:
        """Return whether the start that was given was beyond the end; it may be in the log now."""
        return any(loss.condition == losses.RESET and loss.partition == part for loss in self.lost)

    def _first_again(self, part: TopicPartition, log: Log, start: int, until: int) -> int:
        """Return where a first batch starts now: retention may move the first record since a time.

        Records before that one are older, although they come later than those that are deleted.
        """
        query = self.world.query
        if part not in (self.first or {}):
            return start
        if self._is_start_changed or self._was_reset(part):
            again = model.start_again(query, self.world.kafka, part, log, until)
            return max(start, again)
        if not query.start.is_time or start >= log.start:
            return start
        return model.start_again(query, self.world.kafka, part, log, until)

    def values(
        self, rows: Iterable[tuple[str, int, int, bytes]], start: Offsets, end: Offsets
    ) -> set[bytes]:
        kafka, query = self.world.kafka, self.world.query
        values: set[bytes] = set()
        for topic, number, offset, value in rows:
            part, record = TopicPartition(topic, number), kafka.written.get(value)
            if record is None or record.partition != part or record.offset != offset:
                raise ViolationError("a row is no record", f"{part} {offset} {value!r}")
            if value in values:
                raise ViolationError("a batch has a record twice", self.name(value))
            if not start.get(part, 0) <= offset < end.get(part, 0):
                raise ViolationError("a batch has a record of others", self.name(value))
            if not kafka.is_visible(value, committed_only=query.committed_only):
                raise ViolationError("a record is not committed", self.name(value))
            values.add(value)
        return values

    def name(self, value: bytes) -> str:
        record = self.world.kafka.written[value]
        return f"offset {record.offset} of {record.partition}"
