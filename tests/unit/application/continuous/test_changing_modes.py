"""Exactly-once queries of one checkpoint, of both kinds, and what their late drivers change."""

import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.memory.writing import MemoryTransactions
from pyspark_kafka.application.continuous.epochs import EpochLog, LoggedEpochs
from pyspark_kafka.application.continuous.query import ContinuousQuery
from pyspark_kafka.application.writing.kafka_sink import KafkaSink
from pyspark_kafka.bootstrap.container import metadata_log_at
from pyspark_kafka.domain.checkpoints.checkpoint_log import COMMITTED, write_batch_end
from pyspark_kafka.domain.checkpoints.entries import SinkPlan
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.continuous.settings import ContinuousSettings, RestartLimits
from pyspark_kafka.domain.errors import BrokerUnreachableError, MetadataLogError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import ProducerFencedError, QueryReplacedError
from pyspark_kafka.domain.writing.transaction import SinkTaskId, TransactionState, WriteResult
from pyspark_kafka.ports.continuous import PolledRecords, StreamClient
from pyspark_kafka.testing.world import await_until

from ..passing import passing
from .pipeline import FAST, Gate, Pipeline, keep

EXACTLY_ONCE = {"deliveryGuarantee": "exactly-once"}
T0, T1 = TopicPartition("in", 0), TopicPartition("in", 1)
COMMON = {"kafka.bootstrap.servers": "memory", "client": "memory"}


class Modes(Pipeline):
    """The checkpoint of a continuous query, and what Spark does with it in micro-batches."""

    query_id = "00000000-0000-4000-8000-000000000000"

    def prepare(self) -> None:
        """Create the checkpoint, as Spark does."""
        self.checkpoint.mkdir()
        (self.checkpoint / "metadata").write_text(f'{{"id":"{self.query_id}"}}')

    def log(self, name: str) -> Any:
        return metadata_log_at(StoragePath(str(self.checkpoint)).child(name))

    def plan(self, batch: int, end: int) -> None:
        offsets = PartitionOffsets({T0: end, T1: 0})
        assert self.log("offsets").add(batch, write_batch_end(offsets, 1))

    def sink(self, **options: str) -> KafkaSink:
        given = {"topic": "out", "checkpointLocation": str(self.checkpoint), **COMMON, **options}
        self.options = parse_sink_options({**given, **EXACTLY_ONCE}, QueryKind.STREAM)
        self.sinks = self.sink_container(self.options)
        return self.sinks.kafka_sink()

    def write(self, batch: int, start: int, end: int, plan: SinkPlan) -> list[WriteResult]:
        """Write a batch's records as its one task."""
        values = [b"%d" % number for number in range(start, end)]
        rows = pa.RecordBatch.from_pydict({"value": values, "partition": [0] * len(values)})
        prefix = self.options.transactional_id_prefix
        task = SinkTaskId(self.query_id, "run", batch, 0, 0)
        name = task.transactional_id(prefix, plan.log_id)
        return [self.sinks.sink_task().write([rows], name, plan.used_until_ms)]

    def run_batch(self, batch: int, start: int, end: int) -> None:
        """Run a batch of an exactly-once micro-batch query from its plan to its commit."""
        self.decide_batch(batch, start, end)
        assert self.log("commits").add(batch, COMMITTED)

    def decide_batch(self, batch: int, start: int, end: int) -> None:
        """Run a batch up to where Spark commits it in the checkpoint."""
        if batch not in self.log("offsets").batch_ids():
            self.plan(batch, end)
        sink = self.sink()
        plan = sink.recover()
        sink.commit(batch, self.query_id, self.write(batch, start, end, plan), plan)

    def run_continuously(self) -> None:
        query = self.start(sink=EXACTLY_ONCE)
        query.processAllAvailable()
        query.stop()

    def late_client(self) -> StreamClient:
        """Return the client of a task whose driver began with epoch 0."""
        given = {"subscribe": "in", **COMMON}
        container = self.container(parse_source_options(given, QueryKind.STREAM))
        settings = ContinuousSettings(f"pyspark-kafka-{self.query_id}", "late", 0)
        client: StreamClient = container.stream_client(self.options, settings)
        return client


@pytest.fixture
def modes(tmp_path):
    modes = Modes(tmp_path / "checkpoint")
    modes.prepare()
    modes.sink()
    yield modes
    modes.close()


def row(number: int) -> Sequence[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({"value": [b"%d" % number], "partition": [0]})]


# A micro-batch driver that is late


def test_a_micro_batch_driver_that_had_written_cannot_commit_after_a_continuous_query(modes):
    modes.produce(0, 5)
    modes.plan(0, 5)
    late = modes.sink()
    plan = late.recover()
    written = modes.write(0, 0, 5, plan)
    modes.run_continuously()
    with pytest.raises(MetadataLogError, match="has taken over batch 0"):
        late.commit(0, modes.query_id, written, plan)
    late.abort(0, written, modes.query_id)
    assert modes.written() == list(range(5))


def test_a_micro_batch_driver_that_stood_still_before_its_entry_cannot_add_it(modes):
    """It had read the log before the continuous query moved it on."""
    modes.produce(0, 5)
    modes.plan(0, 5)
    late = modes.sink()
    plan = late.recover()
    written = modes.write(0, 0, 5, plan)

    def take_over_first(*given: Any) -> Any:
        modes.run_continuously()
        return log.add(*given)

    log = late._log
    late._log = passing(log, add=take_over_first)
    with pytest.raises(MetadataLogError, match="Another driver has written entry 0"):
        late.commit(0, modes.query_id, written, plan)
    assert modes.written() == list(range(5))


def test_a_micro_batch_driver_that_begins_late_writes_nothing(modes):
    modes.produce(0, 5)
    modes.plan(0, 5)
    late = modes.sink()
    plan = late.recover()
    modes.run_continuously()
    written = modes.write(0, 0, 5, plan)
    with pytest.raises(MetadataLogError):
        late.commit(0, modes.query_id, written, plan)
    assert modes.written() == list(range(5))


def test_a_continuous_query_aborts_what_late_tasks_have_written(modes):
    """Consumers of committed records would wait for their time-out."""
    modes.produce(0, 5)
    modes.plan(0, 5)
    late = modes.sink()
    plan = late.recover()
    [written] = modes.write(0, 0, 5, plan)
    assert written.transaction is not None
    query = modes.start(sink=EXACTLY_ONCE)
    query.processAllAvailable()
    open_ones = modes.cluster.find_transactions("pyspark-kafka-", TransactionState.ONGOING)
    assert written.transaction.transactional_id not in open_ones


def test_a_continuous_query_does_not_run_a_batch_that_is_decided_while_it_starts(
    modes, monkeypatch
):
    modes.produce(0, 3)
    modes.run_continuously()
    modes.produce(3, 5)
    batch = max(modes.log("offsets").batch_ids()) + 1
    recover = EpochLog.recover

    def recover_late(log: EpochLog) -> LoggedEpochs:
        modes.decide_batch(batch, 3, 5)
        return recover(log)

    monkeypatch.setattr(EpochLog, "recover", recover_late)
    with pytest.raises(MetadataLogError, match=f"transactions of batch {batch} are committed"):
        modes.start(sink=EXACTLY_ONCE).awaitTermination(30)
    assert modes.written() == list(range(5))


def test_a_batch_that_a_continuous_query_has_begun_is_not_written_by_micro_batches(modes):
    modes.produce(0, 5)
    modes.plan(0, 9)
    query = modes.start(sink=EXACTLY_ONCE)
    await_until(lambda: modes.written() == list(range(5)))
    query.stop()
    with pytest.raises(MetadataLogError, match="taken over batch 0, and it alone may finish it"):
        modes.sink().recover()
    modes.produce(5, 9)
    modes.run_continuously()
    modes.produce(9, 12)
    modes.run_batch(max(modes.log("offsets").batch_ids()) + 1, 9, 12)
    assert modes.written() == list(range(12))


def begin_batch_1(modes: Modes) -> tuple[KafkaSink, SinkPlan, list[WriteResult]]:
    """Let a continuous query finish batch 0, and tasks of a micro-batch query write batch 1."""
    modes.produce(0, 5)
    modes.run_continuously()
    modes.produce(5, 7)
    batch = max(modes.log("offsets").batch_ids()) + 1
    assert batch == 1
    modes.plan(batch, 7)
    newer = modes.sink()
    plan = newer.recover()
    return newer, plan, modes.write(batch, 5, 7, plan)


def test_a_hand_over_that_is_late_after_its_entry_aborts_no_later_batch(modes):
    modes.plan(0, 5)
    late = modes.sink()
    later: list[Any] = []

    def add_and_stand_still(*given: Any) -> Any:
        is_added = log.add(*given)
        later.extend(begin_batch_1(modes))
        return is_added

    log = late._log
    late._log = passing(log, add=add_and_stand_still)
    late.hand_over(0)
    newer, plan, written = later
    newer.commit(1, modes.query_id, written, plan)
    assert modes.written() == list(range(7))


def test_a_second_hand_over_that_is_late_aborts_no_later_batch(modes):
    modes.plan(0, 5)
    modes.sink().hand_over(0)
    late = modes.sink()
    later: list[Any] = []

    def read_and_stand_still() -> Any:
        found = log.latest()
        later.extend(begin_batch_1(modes))
        return found

    log = late._log
    late._log = passing(log, latest=read_and_stand_still)
    with pytest.raises(MetadataLogError, match="Multiple streaming jobs detected for 1"):
        late.hand_over(0)
    newer, plan, written = later
    newer.commit(1, modes.query_id, written, plan)
    assert modes.written() == list(range(7))


def test_a_hand_over_aborts_what_was_open_and_again_what_was_opened_since(modes):
    modes.produce(0, 5)
    modes.plan(0, 5)
    late = modes.sink()
    plan = late.recover()
    for _ in range(2):
        modes.write(0, 0, 5, plan)
        modes.sink().hand_over(0)
        assert not modes.cluster.find_transactions("pyspark-kafka-", TransactionState.ONGOING)


def test_a_micro_batch_driver_whose_batch_a_continuous_query_has_finished_commits_nothing(modes):
    """It read the checkpoint only after later epochs, and found nothing to take over there."""
    modes.produce(0, 3)
    modes.run_continuously()
    batch = max(modes.log("offsets").batch_ids())
    modes.run_continuously()
    modes.produce(3, 5)
    modes.run_batch(last := max(modes.log("offsets").batch_ids()) + 1, 3, 5)
    late = modes.sink()
    plan = late.recover()
    written = modes.write(batch, 0, 3, plan)
    with pytest.raises(MetadataLogError, match=f"Batch {last} was the last one .* {batch} began"):
        late.commit(batch, modes.query_id, written, plan)
    late.abort(batch, written, modes.query_id)
    assert modes.written() == list(range(5))


def test_a_late_micro_batch_driver_commits_nothing_if_its_offsets_were_purged(modes):
    """They cannot be compared with those that its tasks have read."""
    modes.produce(0, 3)
    modes.run_continuously()
    batch = max(modes.log("offsets").batch_ids())
    modes.run_continuously()
    last = max(modes.log("offsets").batch_ids()) + 1
    modes.plan(last, 3)
    late = modes.sink()
    plan = late.recover()
    written = modes.write(batch, 0, 3, plan)
    modes.log("offsets").purge(last)
    with pytest.raises(MetadataLogError, match=f"Batch {last} was the last one .* {batch} began"):
        late.commit(batch, modes.query_id, written, plan)
    assert modes.written() == [0, 1, 2]


def test_a_micro_batch_driver_that_begins_after_later_epochs_fences_no_task(modes):
    modes.produce(0, 3)
    modes.run_continuously()
    modes.run_continuously()
    with closing(modes.late_client()) as live:
        live.assign(PartitionOffsets({T0: 3}))
        live.write(PolledRecords(T0, None, 4), row(3))
        with pytest.raises(MetadataLogError, match="is an epoch of a continuous query"):
            modes.sink().recover()
        live.poll(0)
    assert modes.written() == [0, 1, 2, 3]


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_micro_batch_driver_does_not_run_an_unfinished_epoch(modes, epochs):
    """The first one may hold no record, and what the query committed since is not logged yet."""
    modes.produce(0, 3)
    modes.run_batch(0, 0, 3)
    modes.produce(3, 5)
    modes.run_continuously()
    for name, last in (("offsets", epochs), ("commits", epochs - 1)):
        for path in (modes.checkpoint / name).iterdir():
            if path.name.isdigit() and int(path.name) > last:
                path.unlink()
    with pytest.raises(MetadataLogError, match=f"Batch {epochs}, .* is an epoch of a continuous"):
        modes.sink().recover()


# A continuous driver that is late


def test_a_continuous_task_that_had_written_cannot_commit_after_a_micro_batch(modes):
    modes.produce(0, 3)
    modes.run_continuously()
    with closing(modes.late_client()) as late:
        late.assign(PartitionOffsets({T0: 3}))
        late.write(PolledRecords(T0, None, 4), row(3))
        modes.produce(3, 5)
        modes.run_batch(max(modes.log("offsets").batch_ids()) + 1, 3, 5)
        with pytest.raises(ProducerFencedError):
            late.poll(0)
    assert modes.written() == list(range(5))


def test_a_continuous_task_that_begins_after_a_micro_batch_commits_nothing(modes):
    modes.produce(0, 3)
    modes.run_continuously()
    modes.produce(3, 5)
    modes.run_batch(max(modes.log("offsets").batch_ids()) + 1, 3, 5)
    with (
        closing(modes.late_client()) as late,
        pytest.raises(QueryReplacedError, match="a micro-batch query took over"),
    ):
        late.assign(PartitionOffsets({T0: 3}))
    assert modes.written() == list(range(5))


@pytest.mark.parametrize("later_runs", [0, 1])
def test_a_query_with_an_older_backup_of_the_checkpoint_is_refused_at_each_start(
    modes, tmp_path, later_runs
):
    """A refused start logs no epoch, so that the next one does not seem to be newer."""
    modes.produce(0, 3)
    modes.run_continuously()
    shutil.copytree(modes.checkpoint, tmp_path / "backup")
    for _ in range(later_runs):
        modes.run_continuously()
    modes.produce(3, 5)
    modes.run_batch(max(modes.log("offsets").batch_ids()) + 1, 3, 5)
    shutil.rmtree(modes.checkpoint)
    shutil.copytree(tmp_path / "backup", modes.checkpoint)
    before = modes.log("offsets").batch_ids()
    for _ in range(3):
        with pytest.raises(QueryReplacedError, match="older backup, restore the newest one"):
            modes.start(sink=EXACTLY_ONCE).awaitTermination(30)
        assert modes.log("offsets").batch_ids() == before
    assert modes.written() == list(range(5))


def test_a_start_does_not_wait_for_open_transactions_of_tasks_that_were_killed(modes, monkeypatch):
    committed = MemoryTransactions.committed

    def wait(*given: Any, is_stable: bool = True) -> Any:
        if is_stable:
            raise BrokerUnreachableError("memory", 60)
        return committed(*given)

    monkeypatch.setattr(MemoryTransactions, "committed", wait)
    modes.produce(0, 3)
    modes.run_continuously()
    assert modes.written() == [0, 1, 2]


def test_a_task_that_starts_while_a_micro_batch_takes_over_is_shut_out(modes, monkeypatch):
    """Each fences the other; the seal is there when the task has begun again."""
    modes.produce(0, 3)
    modes.run_continuously()
    modes.plan(number := max(modes.log("offsets").batch_ids()) + 1, 3)
    sink, late = modes.sink(), modes.late_client()
    transactions = modes.sinks.transactions()
    commit_offset, is_first = transactions.commit_offset, iter([True])

    def begin_first(*given: Any) -> None:
        if next(is_first, False):
            late.assign(PartitionOffsets({T0: 3}))
        commit_offset(*given)

    monkeypatch.setattr(type(transactions), "commit_offset", lambda _, *given: begin_first(*given))
    sink.recover()
    late.write(PolledRecords(T0, None, 4), row(3)[:0])
    with pytest.raises(ProducerFencedError):
        late.poll(0)
    with pytest.raises(QueryReplacedError, match=f"with batch {number}"):
        modes.late_client().assign(PartitionOffsets({T0: 3}))


def test_what_a_continuous_query_has_committed_after_its_last_epoch_is_not_repeated(modes):
    modes.produce(0, 3)
    modes.run_continuously()
    modes.produce(3, 5)
    with closing(modes.late_client()) as late:
        late.assign(PartitionOffsets({T0: 3}))
        late.write(PolledRecords(T0, None, 4), row(3))
        late.poll(0)
    number = max(modes.log("offsets").batch_ids()) + 1
    with pytest.raises(MetadataLogError, match=r"of in-0 up to offset 4, .* at offset 3"):
        modes.run_batch(number, 3, 5)
    assert modes.written() == [0, 1, 2, 3]
    modes.run_continuously()
    assert modes.written() == list(range(5))
    modes.produce(5, 6)
    modes.run_batch(max(modes.log("offsets").batch_ids()) + 1, 5, 6)
    assert modes.written() == list(range(6))


def fail_after_three(modes: Modes, cause: str) -> ContinuousQuery:
    """Return a query that has committed three records, logged none, and failed."""
    gate = Gate()

    def function(records: pa.RecordBatch) -> pa.RecordBatch:
        if b"3" in records["value"].to_pylist():
            gate.hold()
            raise ValueError("no more than two")
        return keep(records)

    limits = replace(FAST, epoch_s=60, restarts=RestartLimits(max_restarts=0))
    modes.produce(0, 3)
    query = modes.start(function, limits=limits, sink=EXACTLY_ONCE)
    await_until(lambda: modes.written() == [0, 1, 2])
    if cause == "brokers":
        modes.poll_failures = 10**6
    else:
        modes.produce(3, 4)
        gate.await_reached()
    if cause == "function at the end":
        query._execution.stop()
    gate.open()
    await_until(lambda: not query.isActive)
    modes.poll_failures = 0
    return query


FAILURES = pytest.mark.parametrize(
    ("cause", "condition"),
    [
        ("function", "KAFKA_FUNCTION_FAILED"),
        ("function at the end", "KAFKA_FUNCTION_FAILED"),
        ("brokers", "KAFKA_TOO_MANY_RESTARTS"),
    ],
)


@FAILURES
def test_micro_batches_go_on_after_a_continuous_query_that_has_failed(modes, cause, condition):
    query = fail_after_three(modes, cause)
    assert f"[{condition}]" in str(query.exception())
    modes.produce(4, 5)
    batch = max(modes.log("offsets").batch_ids()) + 1
    modes.run_batch(batch, 3, 5)
    assert modes.written() == list(range(5))


@FAILURES
def test_a_failure_is_more_important_than_what_could_not_be_logged_after_it(
    modes, cause, condition, monkeypatch, caplog
):
    def fail(*_: object) -> None:
        raise BrokerUnreachableError("memory", 1)

    monkeypatch.setattr(MemoryTransactions, "begin", fail)
    query = fail_after_three(modes, cause)
    assert f"[{condition}]" in str(query.exception())
    assert any("could not be kept from committing" in each for each in caplog.messages)


def test_queries_take_over_from_each_other_again_and_again(modes):
    for start in range(0, 24, 6):
        modes.produce(start, start + 3)
        modes.run_continuously()
        modes.produce(start + 3, start + 6)
        batch = max(modes.log("offsets").batch_ids()) + 1
        modes.run_batch(batch, start + 3, start + 4)
        modes.run_batch(batch + 1, start + 4, start + 6)
    assert modes.written() == list(range(24))


def test_only_the_first_batch_after_a_continuous_query_looks_at_its_group(modes, monkeypatch):
    modes.produce(0, 4)
    modes.run_continuously()
    batch = max(modes.log("offsets").batch_ids()) + 1
    modes.run_batch(batch, 4, 4)
    monkeypatch.delattr(type(modes.sinks.transactions()), "commit_offset")
    modes.run_batch(batch + 1, 4, 4)


def test_a_query_at_least_once_leaves_no_group_to_look_at(modes, monkeypatch):
    modes.produce(0, 4)
    query = modes.start()
    query.processAllAvailable()
    query.stop()
    monkeypatch.delattr(type(modes.sinks.transactions()), "commit_offset")
    modes.run_batch(max(modes.log("offsets").batch_ids()) + 1, 4, 4)
