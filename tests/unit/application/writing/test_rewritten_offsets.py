"""``pyspark-kafka offsets`` changes a checkpoint on purpose, and the sink continues."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.application.checkpoints.offsets import OffsetCheckpoint
from pyspark_kafka.application.writing.kafka_sink import KafkaSink
from pyspark_kafka.application.writing.sink_checkpoint import SinkCheckpoint
from pyspark_kafka.domain.checkpoints.entries import BatchState, SinkLogEntry
from pyspark_kafka.domain.checkpoints.offset_rewrite import ResumePoint
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.transaction import WriteResult

from .test_kafka_sink import IN_CHECKPOINT, LOG_ID, TASKS, Stage, rows

HOUR_MS = 3_600_000


def content(end: int) -> bytes:
    return b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}\n{"in":{"0":%d}}' % end


@dataclass
class Query:
    """A query that reads the topic ``in`` and writes ``t``; Spark's part of it is here."""

    stage: Stage
    offsets: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)
    commits: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)

    @property
    def tool(self) -> OffsetCheckpoint:
        return OffsetCheckpoint(self.offsets, self.commits, self.stage.backups, lambda: HOUR_MS)

    def sink(self) -> KafkaSink:
        checkpoint = SinkCheckpoint(
            self.offsets, self.stage.backups, lambda: "q", has_sink_log=True
        )
        transactions = self.stage.transactions
        return KafkaSink(self.stage.log, checkpoint, lambda: transactions, IN_CHECKPOINT, LOG_ID)

    def run(self, batch: int, end: int, *, is_recorded: bool = True) -> list[str]:
        """Run a batch; return what is visible then. Without records, it writes nothing."""
        self.offsets.add(batch, content(end))
        before = self.offsets.get(batch - 1)
        is_empty = before is not None and before.endswith(b"\n".join(self._sources(batch)))
        plan = self.sink().recover()
        written = [WriteResult()] * TASKS
        if not is_empty and batch > plan.committed_through:
            written = self.stage.run_tasks(batch)
        self.sink().commit(batch, "q", written, plan)
        if is_recorded:
            self.commits.add(batch, b"v1\n{}")
        return self.stage.visible()

    def _sources(self, batch: int) -> list[bytes]:
        return (self.offsets.get(batch) or b"").split(b"\n")[2:]

    def rewrite(self, offset: int) -> ResumePoint:
        before = self.tool.read()
        moved = PartitionOffsets({TopicPartition("in", 0): offset})
        self.tool.change(before, before.moved_to({"0": moved}))
        return before

    def undo(self) -> None:
        found = self.tool.backup()
        assert found is not None
        self.tool.undo(self.tool.read(), *found)


@pytest.fixture
def query(kit):
    made = Query(Stage(kit))
    assert made.run(0, end=10) == rows(0)
    return made


@pytest.mark.parametrize("rewrites", [1, 3])
def test_a_query_starts_after_its_offsets_were_rewritten(query, rewrites):
    for offset in range(rewrites):
        query.rewrite(offset)
    assert query.run(1, end=0) == rows(0)
    assert query.run(2, end=10) == rows(0, 2)


def test_a_planned_batch_that_is_dropped_is_not_written(query):
    query.offsets.add(1, content(20))
    query.rewrite(0)
    assert query.run(1, end=0) == rows(0)
    assert query.run(2, end=20) == rows(0, 2)


@pytest.mark.parametrize("state", [BatchState.PREPARED, BatchState.COMMITTED])
def test_a_planned_batch_that_the_sink_has_decided_stays(query, state):
    """The tasks of the batch without records skip it, as Spark numbers both alike."""
    query.run(1, end=20, is_recorded=False)
    if state is BatchState.PREPARED:
        number = max(query.stage.log.batch_ids())
        query.stage.log.remove(number)
        entry = query.stage.entry()
        assert entry.state is state
    query.rewrite(0)
    assert query.run(1, end=0) == rows(0, 1)
    assert query.run(2, end=20) == rows(0, 1, 2)


@pytest.mark.parametrize("has_planned", [False, True])
@pytest.mark.parametrize("has_run", [False, True])
def test_a_query_starts_after_a_rewrite_was_undone(query, has_planned, has_run):
    if has_planned:
        query.offsets.add(1, content(20))
    query.rewrite(0)
    batch = 1
    if has_run:
        query.run(1, end=0)
        batch = 2
    query.undo()
    assert query.run(batch, end=20) == (rows(0) if has_run else rows(0, 1))
    assert query.run(batch + 1, end=30) == rows(*([0, 3] if has_run else [0, 1, 2]))


def changed_by_hand(query: Query) -> None:
    query.offsets.replace(0, content(5))


def changed_after_a_rewrite(query: Query) -> None:
    query.rewrite(0)
    query.offsets.replace(0, content(5))


def rewritten_before_a_restore(query: Query) -> None:
    """The backups are of batches before the one that was changed."""
    query.rewrite(10)
    query.run(1, end=10)
    query.run(2, end=20)
    query.offsets.replace(2, content(15))


@pytest.mark.parametrize(
    "change", [changed_by_hand, changed_after_a_rewrite, rewritten_before_a_restore]
)
def test_a_checkpoint_that_the_tool_did_not_change_is_refused(
    query: Query, change: Callable[[Query], None]
):
    change(query)
    with pytest.raises(MetadataLogError, match="was written with other offsets"):
        query.sink().recover()


def test_an_empty_batch_that_was_decided_hides_no_records(query):
    """An undo gives its number back to a batch with records, which tasks would skip."""
    query.offsets.add(1, content(20))
    query.rewrite(0)
    query.run(1, end=0, is_recorded=False)
    query.undo()
    assert SinkLogEntry.from_bytes((query.stage.log.latest() or (0, b""))[1]).batch_id == 1
    with pytest.raises(MetadataLogError, match="was written with other offsets"):
        query.sink().recover()
    query.rewrite(10)
    assert query.run(1, end=10) == rows(0)
    assert query.run(2, end=20) == rows(0, 2)
