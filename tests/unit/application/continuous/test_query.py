"""Continuous queries over a cluster in memory, with tasks in threads."""

from __future__ import annotations

import threading
from dataclasses import replace

import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry

from pyspark_kafka.adapters.prometheus import PrometheusProgressListener
from pyspark_kafka.adapters.racks import of_process
from pyspark_kafka.application.continuous.epochs import CatchUps
from pyspark_kafka.application.continuous.errors import FunctionError, TaskFailedError
from pyspark_kafka.bootstrap.container import (
    metadata_log_at,
)
from pyspark_kafka.domain.checkpoints.checkpoint_log import write_batch_end
from pyspark_kafka.domain.checkpoints.entries import SINK_LOG, BatchState, SinkLogEntry
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.continuous.settings import RestartLimits
from pyspark_kafka.domain.errors import BrokerUnreachableError, MetadataLogError, PysparkKafkaError
from pyspark_kafka.domain.options.sink import sink_log_path
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing.world import await_until

from .pipeline import FAST, Pipeline, keep


@pytest.fixture
def pipeline(tmp_path):
    pipeline = Pipeline(tmp_path / "checkpoint")
    yield pipeline
    pipeline.close()


@pytest.fixture(params=["at-least-once", "exactly-once"])
def guarantee(request):
    return {"deliveryGuarantee": request.param}


def test_tasks_find_their_rack_and_the_driver_does_not(pipeline, monkeypatch):
    monkeypatch.setenv("KAFKA_CLIENT_RACK", "r")
    monkeypatch.setattr(of_process, "_racks", {})
    racks: list[str | None] = []
    make = pipeline.container

    def noting(options):
        racks.append(dict(options.kafka).get("client.rack"))
        return make(options)

    pipeline.container = noting
    pipeline.produce(0, 1)
    pipeline.start(clientRackFrom="environment")
    await_until(lambda: pipeline.written() == [0])
    assert racks[0] is None
    assert "r" in racks


def test_records_are_written_in_order(pipeline, guarantee):
    pipeline.produce(0, 100)
    query = pipeline.start(sink=guarantee)
    query.processAllAvailable()
    assert pipeline.written() == list(range(100))
    pipeline.produce(100, 200)
    query.processAllAvailable()
    assert pipeline.written() == list(range(200))


def test_a_stopped_query_goes_on_where_it_ended(pipeline, guarantee):
    pipeline.produce(0, 50)
    query = pipeline.start(sink=guarantee)
    query.processAllAvailable()
    query.stop()
    pipeline.produce(50, 80)
    again = pipeline.start(sink=guarantee)
    again.processAllAvailable()
    assert pipeline.written() == list(range(80))
    assert again.id == query.id
    assert again.runId != query.runId


@pytest.mark.parametrize(
    ("batch_id", "state", "is_refused"),
    [
        (0, BatchState.PREPARED, True),
        (0, BatchState.COMMITTED, True),
        (0, BatchState.DROPPED, False),
    ],
)
def test_a_batch_whose_transactions_are_decided_is_not_repeated(
    pipeline, guarantee, batch_id, state, is_refused
):
    pipeline.produce(0, 50)
    checkpoint = StoragePath(str(pipeline.checkpoint))
    offsets = PartitionOffsets({TopicPartition("in", 0): 20, TopicPartition("in", 1): 0})
    metadata_log_at(checkpoint.child("offsets")).add(0, write_batch_end(offsets, 0))
    sink_log = metadata_log_at(sink_log_path(checkpoint).child(SINK_LOG))
    sink_log.add(batch_id, SinkLogEntry(batch_id, state).to_bytes())
    if is_refused and guarantee["deliveryGuarantee"] == "exactly-once":
        with pytest.raises(MetadataLogError, match=f"transactions of batch 0 are {state.value}"):
            pipeline.start(sink=guarantee).awaitTermination(30)
    else:
        pipeline.start(sink=guarantee).processAllAvailable()
        assert pipeline.written() == list(range(50))


def test_stopping_finishes_what_was_read(pipeline):
    pipeline.produce(0, 50)
    query = pipeline.start()
    await_until(lambda: bool(pipeline.written()))
    query.stop()
    assert not query.isActive
    assert query.exception() is None
    written = pipeline.written()
    pipeline.start().processAllAvailable()
    assert pipeline.written() == list(range(50))
    assert pipeline.written()[: len(written)] == written


def test_stopping_waits_for_records_that_a_function_has(pipeline):
    """Their offsets are logged, so that the next query does not read them again."""
    is_called, goes_on = threading.Event(), threading.Event()

    def wait(records: pa.RecordBatch) -> pa.RecordBatch:
        is_called.set()
        goes_on.wait(30)
        return keep(records)

    pipeline.produce(0, 3)
    query = pipeline.start(wait)
    assert is_called.wait(30)
    threading.Timer(0.2, goes_on.set).start()
    query.stop()
    assert pipeline.written() == [0, 1, 2]
    pipeline.start().processAllAvailable()
    assert pipeline.written() == [0, 1, 2]


def test_stopping_says_that_the_last_epoch_could_not_be_logged(pipeline):
    pipeline.produce(0, 3)
    query = pipeline.start(limits=replace(FAST, epoch_s=60))
    await_until(lambda: pipeline.written() == [0, 1, 2])
    offsets = pipeline.checkpoint / "offsets"
    offsets.rename(pipeline.checkpoint / "elsewhere")
    offsets.write_bytes(b"")
    with pytest.raises(MetadataLogError) as raised:
        query.stop()
    assert query.exception() is raised.value
    query.stop()


def test_waiting_for_the_end_of_a_query_may_end_before(pipeline):
    query = pipeline.start()
    assert not query.awaitTermination(0.01)
    query.stop()
    assert query.awaitTermination(0.01)


def test_a_function_that_raises_ends_the_query_and_names_the_records(pipeline):
    def fail(records: pa.RecordBatch) -> None:
        raise ValueError(f"{records.num_rows} rows")

    pipeline.produce(0, 3)
    query = pipeline.start(fail)
    with pytest.raises(
        TaskFailedError, match=r"topic in partition 0 offsets \[0, 3\): ValueError: 3 rows"
    ) as raised:
        query.awaitTermination(30)
    assert str(raised.value).startswith(f"[{FunctionError.condition}]")
    assert query.exception() is raised.value


def test_tasks_that_fail_start_again_where_they_ended(pipeline, guarantee):
    pipeline.produce(0, 3)
    query = pipeline.start(sink=guarantee)
    query.processAllAvailable()
    pipeline.poll_failures = 1
    pipeline.produce(3, 6)
    query.processAllAvailable()
    assert pipeline.written() == list(range(6))
    assert pipeline.poll_failures == 0


def test_a_topic_that_was_made_anew_while_no_query_ran_is_read_from_its_beginning(pipeline):
    """Its records are new, also those before the offset at which the query had ended."""
    pipeline.produce(0, 10)
    query = pipeline.start()
    query.processAllAvailable()
    query.stop()
    pipeline.cluster.delete_topic("in")
    pipeline.cluster.create_topic("in", 2)
    pipeline.produce(10, 14)
    pipeline.start(failOnDataLoss="false")
    await_until(lambda: pipeline.written() == list(range(14)))


def test_progress_has_rates_lag_and_latency(pipeline):
    query = pipeline.start()
    pipeline.produce(0, 5)
    await_until(lambda: bool(query.lastProgress and query.lastProgress["numInputRows"]))
    progress = query.lastProgress
    assert progress is not None
    assert progress["id"] == query.id
    assert progress["sink"] == {"description": "Kafka[out]", "numOutputRows": 5}
    assert progress["latencyMs"]["p99"] >= 0
    (source,) = progress["sources"]
    assert source["endOffset"] == {"in": {"0": 5, "1": 0}}
    assert source["metrics"]["maxOffsetsBehindLatest"] == "0"


def test_a_notebook_shows_a_query(pipeline):
    query = pipeline.start(name="<b>orders</b>")
    await_until(lambda: query.status["isTriggerActive"])
    assert f"<td>id</td><td>{query.id}</td>" in query._repr_html_()
    pipeline.produce(0, 5)
    query.processAllAvailable()
    query.stop()
    html = query._repr_html_()
    assert "<caption>Continuous query &lt;b&gt;orders&lt;/b&gt;</caption>" in html
    assert "<td>state</td><td>Stopped</td>" in html
    for row in ("<td>lag</td><td>0</td>", "<td>restarts</td><td>0</td>", "<td>latency, 99 %</td>"):
        assert row in html


def test_a_notebook_shows_why_a_query_failed(pipeline):
    """The condition only: the text of an error may quote what the query processed."""
    pipeline.produce(0, 1)

    def fail(_: pa.RecordBatch) -> None:
        raise ValueError("geheim")

    limits = replace(FAST, restarts=RestartLimits(max_restarts=0))
    query = pipeline.start(fail, limits=limits)
    with pytest.raises(PysparkKafkaError, match="geheim") as failed:
        query.awaitTermination(30)
    html = query._repr_html_()
    assert f"<td>Failed: {failed.value.condition}</td>" in html
    assert "geheim" not in html


def test_prometheus_has_a_query_until_it_ends(pipeline):
    registry = CollectorRegistry()
    query = pipeline.start(listeners=[PrometheusProgressListener(registry)])
    labels = {"query_id": query.id, "query": ""}

    def value(name: str) -> float | None:
        return registry.get_sample_value(f"pyspark_kafka_continuous_{name}", labels)

    pipeline.produce(0, 5)
    await_until(lambda: bool(value("input_rows_per_second")))
    assert value("lag") == 0
    query.stop()
    assert value("lag") is None


def test_records_of_a_partition_that_no_epoch_has_are_waited_for():
    """The first look finds all the records that exist."""
    catch_ups = CatchUps()
    done = catch_ups.add()
    latest = iter([PartitionOffsets({TopicPartition("in", 0): 1})])
    catch_ups.check(PartitionOffsets(), lambda: next(latest))
    assert not done.is_set()
    catch_ups.check(PartitionOffsets({TopicPartition("in", 0): 1}), lambda: next(latest))
    assert done.is_set()


def test_records_are_waited_for_until_brokers_tell_them_again(caplog):
    """The reason is logged once, and so is that the wait continues."""
    processed = PartitionOffsets({TopicPartition("in", 0): 1})
    error = BrokerUnreachableError("memory", 1)
    answers: list[PartitionOffsets | Exception | None] = [error, None, error, processed]

    def latest() -> PartitionOffsets | None:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    catch_ups = CatchUps()
    all_done = [catch_ups.add(), catch_ups.add()]
    while answers:
        assert not any(done.is_set() for done in all_done)
        catch_ups.check(processed, latest)
    assert all(done.is_set() for done in all_done)
    assert caplog.messages == [
        f"processAllAvailable waits until the latest offsets are known: {error}",
        "The latest offsets are known again, and processAllAvailable continues",
    ]
