"""Exactly-once queries of both kinds that take over from each other, and their late drivers."""

import json
import threading
import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka import continuous
from pyspark_kafka.bootstrap.container import (
    closing_clients,
    container_for,
    metadata_log_at,
    sink_container_for,
)
from pyspark_kafka.domain.checkpoints.checkpoint_log import COMMITTED as COMMIT
from pyspark_kafka.domain.checkpoints.checkpoint_log import read_batch_end, write_batch_end
from pyspark_kafka.domain.checkpoints.entries import SinkPlan
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.continuous.settings import ContinuousSettings, ExecutionLimits
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import ProducerFencedError, QueryReplacedError
from pyspark_kafka.domain.writing.transaction import SinkTaskId
from pyspark_kafka.ports.continuous import PolledRecords, RecordFunction
from pyspark_kafka.testing import KafkaWorld, await_until, numbered
from pyspark_kafka.testing.stream_task import StreamTask, echo
from pyspark_kafka.testing.world import COMMITTED


def keep(records: pa.RecordBatch) -> pa.RecordBatch:
    return records.select(["value"])


class Query:
    """A query from one topic to another, and its checkpoint."""

    def __init__(self, world: KafkaWorld, directory: Path) -> None:
        self.world, self.directory = world, directory
        self.source, self.target = (TopicPartition(world.topic(), 0) for _ in range(2))
        self.query_id = str(uuid.uuid4())
        directory.mkdir()
        (directory / "metadata").write_text(json.dumps({"id": self.query_id}))
        common = {**world.addresses, "client": "kafka-python"}
        self.given = {**common, "subscribe": self.source.topic, "startingOffsets": "earliest"}
        self.written = {**common, "topic": self.target.topic, "deliveryGuarantee": "exactly-once"}
        located = {**self.written, "checkpointLocation": str(directory)}
        self.sink = parse_sink_options(located, QueryKind.STREAM)

    def log(self, name: str) -> Any:
        return metadata_log_at(StoragePath(str(self.directory)).child(name))

    def next_batch(self, end: int) -> int:
        """Plan a batch, as Spark does, and return its number."""
        batch = max(self.log("offsets").batch_ids(), default=-1) + 1
        content = write_batch_end(PartitionOffsets({self.source: end}), 1)
        assert self.log("offsets").add(batch, content)
        return batch

    def write(self, container: Any, batch: int, start: int, end: int, plan: SinkPlan) -> Any:
        rows = pa.RecordBatch.from_pydict({"value": [each.value for each in numbered(start, end)]})
        task = SinkTaskId(self.query_id, "run", batch, 0, 0)
        name = task.transactional_id(self.sink.transactional_id_prefix, plan.log_id)
        return [container.sink_task().write([rows], name, plan.used_until_ms)]

    def start(self, function: RecordFunction = keep, **limits: float) -> continuous.ContinuousQuery:
        return continuous.start(
            None,
            function,
            source=self.given,
            sink=self.written,
            checkpointLocation=str(self.directory),
            limits=ExecutionLimits(**limits),  # type: ignore[arg-type]
        )

    def run_continuously(self) -> None:
        query = self.start()
        query.processAllAvailable()
        query.stop()

    def late_task(self) -> StreamTask:
        """Return a task of a driver that began with epoch 0."""
        settings = ContinuousSettings(f"pyspark-kafka-{self.query_id}", "late", 0)
        source = parse_source_options(self.given, QueryKind.STREAM)
        with closing_clients(container_for(source)) as container:
            return StreamTask(container.stream_client(self.sink, settings), echo)

    def assert_written_once(self, records: int) -> None:
        expected = sorted(each.value or b"" for each in numbered(0, records))
        visible: list[bytes] = []

        def are_visible() -> bool:
            rows = self.world.records(self.target, **COMMITTED)
            visible[:] = sorted(row["value"] for row in rows)
            return len(visible) >= records

        await_until(are_visible)
        assert visible == expected


def write_and_settle(task: StreamTask, polled: Sequence[PolledRecords]) -> None:
    task.write(polled)
    task.settle()


@pytest.fixture
def query(fresh_name, kafka, tmp_path):
    world = KafkaWorld("kafka-python", fresh_name, kafka)
    yield Query(world, tmp_path / "checkpoint")
    world.close()


def test_a_late_micro_batch_driver_commits_nothing_after_a_continuous_query(query):
    query.world.produce(query.source, numbered(0, 5))
    batch = query.next_batch(5)
    with closing_clients(sink_container_for(query.sink)) as late:
        plan = late.kafka_sink().recover()
        written = query.write(late, batch, 0, 5, plan)
        query.run_continuously()
        with pytest.raises(MetadataLogError):
            late.kafka_sink().commit(batch, query.query_id, written, plan)
    query.assert_written_once(5)


def test_a_late_continuous_driver_commits_nothing_after_a_micro_batch(query):
    query.world.produce(query.source, numbered(0, 5))
    query.run_continuously()
    late = query.late_task()
    with closing(late.client):
        late.assign({query.source: 5})
        query.world.produce(query.source, numbered(5, 8))
        polled = late.poll()
        batch = query.next_batch(8)
        with closing_clients(sink_container_for(query.sink)) as container:
            sink = container.kafka_sink()
            plan = sink.recover()
            with pytest.raises(ProducerFencedError):
                write_and_settle(late, polled)
            again = query.late_task()
            with closing(again.client), pytest.raises(QueryReplacedError):
                again.assign({query.source: 5})
            written = query.write(container, batch, 5, 8, plan)
            sink.commit(batch, query.query_id, written, plan)
            assert query.log("commits").add(batch, COMMIT)
    query.world.produce(query.source, numbered(8, 10))
    query.run_continuously()
    query.assert_written_once(10)


def test_what_a_stalled_task_has_committed_is_in_the_last_epoch_of_a_stopped_query(query):
    """The function returns while ``stop`` waits for the task to end."""
    is_called, goes_on = threading.Event(), threading.Event()

    def wait(records: pa.RecordBatch) -> pa.RecordBatch:
        if b"v5" in records["value"].to_pylist():
            is_called.set()
            goes_on.wait(30)
        return records.select(["value"])

    running = query.start(wait, stop_timeout_s=0.5)
    query.world.produce(query.source, numbered(0, 5))
    running.processAllAvailable()
    query.world.produce(query.source, numbered(5, 8))
    assert is_called.wait(30)
    threading.Timer(2, goes_on.set).start()
    running.stop()
    last = read_batch_end(query.log("offsets").latest()[1])
    query.assert_written_once(last[query.source])
    query.next_batch(8)
    with closing_clients(sink_container_for(query.sink)) as container:
        container.kafka_sink().recover()
    query.run_continuously()
    query.assert_written_once(8)


def test_what_a_late_continuous_driver_has_committed_is_not_repeated(query):
    query.world.produce(query.source, numbered(0, 5))
    query.run_continuously()
    query.world.produce(query.source, numbered(5, 8))
    late = query.late_task()
    with closing(late.client):
        late.assign({query.source: 5})
        late.process_to({query.source: 8})
    query.next_batch(8)
    with (
        closing_clients(sink_container_for(query.sink)) as container,
        pytest.raises(MetadataLogError, match=r"up to offset 8, .* ends at offset 5"),
    ):
        container.kafka_sink().recover()
    query.run_continuously()
    query.assert_written_once(8)
