"""Stopping a query whose tasks stand still: what they may write later."""

import threading
from dataclasses import replace

import pytest

from pyspark_kafka.adapters.memory.writing import MemoryTransactions
from pyspark_kafka.application.continuous import execution
from pyspark_kafka.application.continuous.errors import UncertainEndError
from pyspark_kafka.application.continuous.query import ContinuousQuery
from pyspark_kafka.domain.errors import BrokerUnreachableError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing.world import await_until

from .pipeline import FAST, Gate, Pipeline, keep

EXACTLY_ONCE = {"deliveryGuarantee": "exactly-once"}
HASTY = replace(FAST, stop_timeout_s=0.1, max_tasks=1)
T0, T1 = TopicPartition("in", 0), TopicPartition("in", 1)


@pytest.fixture
def pipeline(tmp_path, monkeypatch):
    monkeypatch.setattr(execution, "_CANCEL_S", 0.1)
    pipeline = Pipeline(tmp_path / "checkpoint")
    yield pipeline
    pipeline.close()


def await_tasks() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("pyspark_kafka task"):
            thread.join(30)
            assert not thread.is_alive()


def started(pipeline: Pipeline, place: str, **sink: str) -> tuple[ContinuousQuery, Gate]:
    """Start a query that has written three records, and stands still with the next three."""
    gate = Gate()
    if place == "function":
        held = threading.Event()

        def function(records):
            if held.is_set():
                gate.hold()
            return keep(records)
    else:
        function = keep
    query = pipeline.start(function, limits=HASTY, sink=sink)
    pipeline.produce(0, 3)
    query.processAllAvailable()
    if place == "function":
        held.set()
    else:
        pipeline.gates[place] = gate
    pipeline.produce(3, 6)
    gate.await_reached()
    return query, gate


@pytest.mark.parametrize("place", ["function", "write", "acknowledged"])
def test_what_exactly_once_tasks_commit_is_in_the_last_epoch_of_a_stopped_query(pipeline, place):
    query, gate = started(pipeline, place, **EXACTLY_ONCE)
    query.stop()
    assert query.exception() is None
    epoch, written = pipeline.last_epoch(), pipeline.written()
    assert epoch == PartitionOffsets({T0: len(written), T1: 0})
    gate.open()
    await_tasks()
    assert (pipeline.last_epoch(), pipeline.written()) == (epoch, written)
    pipeline.start(sink=EXACTLY_ONCE).processAllAvailable()
    assert pipeline.written() == list(range(6))


def test_a_task_that_takes_a_partition_after_its_query_was_stopped_commits_nothing(pipeline):
    """It begins new transactions, and finds the group's seal."""
    gate = pipeline.gates["assign"] = Gate()
    pipeline.produce(0, 3)
    query = pipeline.start(limits=HASTY, sink=EXACTLY_ONCE)
    gate.await_reached()
    query.stop()
    gate.open()
    await_tasks()
    assert pipeline.written() == []
    sealed = pipeline.cluster.group_offsets(f"pyspark-kafka-{query.id}")
    assert {each.metadata for each in sealed.values()} == {
        f"pyspark-kafka: run {query.runId} ended"
    }
    pipeline.start(sink=EXACTLY_ONCE).processAllAvailable()
    assert pipeline.written() == [0, 1, 2]


def test_stopping_names_the_tasks_that_may_still_write(pipeline):
    query, gate = started(pipeline, "function")
    with pytest.raises(UncertainEndError, match=r"not ended: task 0 \(run 1, attempt .*\)\. "):
        query.stop()
    assert isinstance(query.exception(), UncertainEndError)
    gate.open()
    await_tasks()
    assert pipeline.written() == [0, 1, 2]
    with pytest.raises(UncertainEndError):
        query.awaitTermination()


def test_a_task_that_ends_while_it_is_cancelled_writes_nothing(pipeline, monkeypatch):
    monkeypatch.setattr(execution, "_CANCEL_S", 30)
    query, gate = started(pipeline, "function")
    threading.Timer(0.5, gate.open).start()
    query.stop()
    assert pipeline.written() == [0, 1, 2]


def test_stopping_says_that_tasks_could_not_be_kept_from_committing(pipeline, monkeypatch):
    def fail(*_):
        raise BrokerUnreachableError("memory", 1)

    query, _ = started(pipeline, "function", **EXACTLY_ONCE)
    monkeypatch.setattr(MemoryTransactions, "begin", fail)
    with pytest.raises(
        UncertainEndError, match=r"committing: .*KAFKA_BROKER_UNREACHABLE"
    ) as caught:
        query.stop()
    assert str(caught.value) == (
        "[KAFKA_UNCERTAIN_END] The continuous query was stopped, but its tasks could not be kept "
        "from committing: [KAFKA_BROKER_UNREACHABLE] No Kafka broker answered at memory within "
        "1 s. What is still written is not in its last epoch. Start it once more, and stop it, "
        "before a query of another kind uses the checkpoint."
    )


def test_tasks_that_end_in_order_are_not_fenced(pipeline, monkeypatch):
    """It takes requests for each partition."""
    query = pipeline.start(sink=EXACTLY_ONCE)
    pipeline.produce(0, 3)
    query.processAllAvailable()
    monkeypatch.delattr(MemoryTransactions, "begin")
    query.stop()
    assert pipeline.last_epoch() == PartitionOffsets({T0: 3, T1: 0})


def test_a_query_that_another_has_replaced_starts_no_task_again(pipeline):
    """Its tasks would fence those of the other one."""
    query = pipeline.start(sink=EXACTLY_ONCE, limits=replace(FAST, epoch_s=60))
    pipeline.produce(0, 3)
    await_until(lambda: pipeline.written() == [0, 1, 2])
    newer = pipeline.start(sink=EXACTLY_ONCE)
    newer.processAllAvailable()
    pipeline.produce(3, 6)
    with pytest.raises(Exception, match="CONCURRENT_STREAM_LOG_UPDATE"):
        query.awaitTermination(30)
    newer.processAllAvailable()
    assert newer.isActive
    assert pipeline.written() == list(range(6))
