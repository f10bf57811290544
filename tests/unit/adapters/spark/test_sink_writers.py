from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import NoReturn

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.spark.sink_writers import (
    BATCH_ID,
    RUN_ID,
    KafkaBatchWriter,
    KafkaStreamWriter,
    TaskCommitMessage,
)
from pyspark_kafka.adapters.spark.tasks import QUERY_ID
from pyspark_kafka.bootstrap.container import SinkContainer, sink_container_for
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions, parse_sink_options
from pyspark_kafka.domain.security.policy import UNRESTRICTED, OptionPolicy
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import NullTopicError
from pyspark_kafka.domain.writing.transaction import TransactionState, WriteResult, short_digest

LOCAL = (QUERY_ID, BATCH_ID, RUN_ID)


@dataclass
class MemoryUseCases:
    """Returns use cases on one cluster and one log, for writing only."""

    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    log: MemoryMetadataLog = field(default_factory=MemoryMetadataLog)

    def driver(self, options: object) -> NoReturn:
        raise NotImplementedError

    check_client = task = driver

    def option_policy(self) -> OptionPolicy:
        return UNRESTRICTED

    @contextmanager
    def sink(self, options: SinkOptions) -> Iterator[SinkContainer]:
        container = sink_container_for(options)
        container.memory_cluster.override(self.cluster)
        container.metadata_log.override(self.log)
        if not options.is_exactly_once:
            # A driver has nothing to do.
            container.kafka_sink.override(None)
        yield container

    def open_ids(self) -> list[str]:
        return list(self.cluster.find_transactions("", TransactionState.ONGOING))

    def count(self) -> int:
        """Return the number of committed records in the topic ``t``."""
        ends = self.cluster.watermarks(TopicPartition("t", 0), committed_only=True)
        assert ends is not None
        return ends[1]


@pytest.fixture
def use_cases():
    """Return a cluster with the topic ``t``."""
    made = MemoryUseCases()
    made.cluster.create_topic("t")
    return made


@pytest.fixture
def in_task(monkeypatch):
    """Run as a task attempt of the first micro-batch."""
    pretend(monkeypatch, {QUERY_ID: "q", BATCH_ID: "0", RUN_ID: "run"})


def pretend(monkeypatch: pytest.MonkeyPatch, properties: Mapping[str, str]) -> None:
    task = SimpleNamespace(
        getLocalProperty=properties.get, partitionId=lambda: 2, taskAttemptId=lambda: 9
    )
    monkeypatch.setattr("pyspark_kafka.adapters.spark.sink_writers.TaskContext.get", lambda: task)


def options(query: QueryKind = QueryKind.STREAM, /, **given: str) -> SinkOptions:
    needed = {"kafka.bootstrap.servers": "memory", "client": "memory"}
    return parse_sink_options({**needed, **given}, query)


def exactly_once() -> SinkOptions:
    return options(topic="t", deliveryGuarantee="exactly-once", metadataPath="memory://unused")


def batches(**columns: list[object]) -> Iterator[pa.RecordBatch]:
    return iter([pa.RecordBatch.from_pydict({"value": [b"v"], **columns})])


def test_a_batch_writes_the_columns_that_records_have(use_cases):
    writer = KafkaBatchWriter(use_cases, options(QueryKind.BATCH, topic="t"))
    writer.write(batches(topic=["no-such-topic"], number=[1]))
    writer.commit([])
    assert use_cases.count() == 1


def test_an_error_has_no_traceback(use_cases):
    writer = KafkaBatchWriter(use_cases, options(QueryKind.BATCH))
    with pytest.raises(NullTopicError) as caught:
        writer.write(batches())
    assert caught.value.__suppress_context__
    assert "sink_task.py" not in [entry.path.name for entry in caught.traceback]  # type: ignore[union-attr]


def test_a_stream_writes_at_least_once_by_its_tasks_alone(use_cases):
    writer = KafkaStreamWriter(use_cases, options(topic="t"))
    message = writer.write(batches())
    writer.commit([message], 0)
    writer.abort([message, None], 0)
    assert use_cases.count() == 1


@pytest.mark.usefixtures("in_task")
def test_a_stream_is_visible_after_its_driver_commits(use_cases):
    wanted = exactly_once()
    message = KafkaStreamWriter(use_cases, wanted).write(batches())
    log, run = short_digest("memory://unused"), short_digest("run")
    assert use_cases.open_ids() == [f"pyspark-kafka-q-{log}-{run}-2-1-0"]
    assert use_cases.count() == 0
    KafkaStreamWriter(use_cases, wanted).commit([message], 0)
    assert use_cases.open_ids() == []
    # The record, and the end of its transaction.
    assert use_cases.count() == 2


@pytest.mark.usefixtures("in_task")
def test_a_visible_batch_is_not_written_again(use_cases):
    """Tasks consume their rows, since Spark counts them, and send none."""
    wanted = exactly_once()
    message = KafkaStreamWriter(use_cases, wanted).write(batches())
    KafkaStreamWriter(use_cases, wanted).commit([message], 0)
    again = KafkaStreamWriter(use_cases, wanted)
    rows = batches()
    message = again.write(rows)
    assert next(rows, None) is None
    again.commit([message], 0)
    assert use_cases.count() == 2


@pytest.mark.usefixtures("in_task")
def test_a_batch_of_another_querys_log_is_not_skipped(use_cases):
    KafkaStreamWriter(use_cases, exactly_once()).commit([TaskCommitMessage(WriteResult(), "r")], 0)
    with pytest.raises(MetadataLogError, match="is of the query 'r', and this one is 'q'"):
        KafkaStreamWriter(use_cases, exactly_once()).write(batches())


@pytest.mark.usefixtures("in_task")
def test_a_twin_has_an_id_of_its_own(use_cases):
    writer = KafkaStreamWriter(use_cases, exactly_once())
    message = writer.write(batches())
    writer.write(batches())
    assert len(use_cases.open_ids()) == 2
    KafkaStreamWriter(use_cases, exactly_once()).commit([message], 0)
    assert use_cases.open_ids() == []


@pytest.mark.usefixtures("in_task")
def test_a_batch_that_failed_is_aborted(use_cases):
    writer = KafkaStreamWriter(use_cases, exactly_once())
    writer.abort([writer.write(batches()), None], 0)
    assert use_cases.open_ids() == []


@pytest.mark.parametrize(
    "properties",
    [{}, *(dict.fromkeys({*LOCAL} - {left_out}, "0") for left_out in LOCAL)],
)
def test_a_task_has_to_know_its_batch(use_cases, monkeypatch, properties):
    pretend(monkeypatch, properties)
    writer = KafkaStreamWriter(use_cases, exactly_once())
    with pytest.raises(RuntimeError, match="outside of a Spark micro-batch"):
        writer.write(batches())


def test_exactly_once_is_for_tasks_of_spark_alone(use_cases):
    with pytest.raises(RuntimeError, match="outside of a Spark task"):
        KafkaStreamWriter(use_cases, exactly_once()).write(batches())
