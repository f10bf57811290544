"""Queries of both kinds commit nothing after another one has taken over the group."""

from contextlib import closing, contextmanager
from typing import Any

import pytest

from pyspark_kafka.adapters.memory.writing import MemoryTransactions
from pyspark_kafka.application.checkpoints.offsets import OffsetCheckpoint
from pyspark_kafka.application.writing.group_take_over import take_over_group
from pyspark_kafka.domain.checkpoints.checkpoint_log import write_batch_end
from pyspark_kafka.domain.checkpoints.offset_rewrite import BACKUPS
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import ProducerFencedError, QueryReplacedError
from pyspark_kafka.domain.writing.group_seal import GroupSeal
from pyspark_kafka.ports.clock import epoch_ms
from pyspark_kafka.ports.continuous import PolledRecords, StreamClient

from .test_changing_modes import COMMON, T0, T1, Modes, row

T2 = TopicPartition("in", 2)
GROUP = f"pyspark-kafka-{Modes.query_id}"


@pytest.fixture
def modes(tmp_path):
    modes = Modes(tmp_path / "checkpoint")
    modes.prepare()
    modes.sink()
    yield modes
    modes.close()


def client_of(modes: Modes, first_epoch: int, run_id: str = "late") -> StreamClient:
    """Return the client of a task of a run that began with an epoch."""
    given = {"subscribe": "in", **COMMON}
    container = modes.container(parse_source_options(given, QueryKind.STREAM))
    settings = ContinuousSettings(GROUP, run_id, first_epoch)
    client: StreamClient = container.stream_client(modes.options, settings)
    return client


def next_batch(modes: Modes) -> int:
    return int(max(modes.log("offsets").batch_ids())) + 1


def plan(modes: Modes, batch: int, **ends: int) -> None:
    """Plan a batch that ends at offsets, by the partition's number after an underscore."""
    offsets = {TopicPartition("in", int(name[1:])): end for name, end in ends.items()}
    assert modes.log("offsets").add(batch, write_batch_end(PartitionOffsets(offsets), 1))


def forget_epochs(modes: Modes, before: int) -> None:
    """Purge the log up to the last batch before one, as after many batches."""
    modes.log("offsets").purge(before - 1)


def seal_of(modes: Modes, partition: TopicPartition) -> GroupSeal:
    return GroupSeal.of(modes.cluster.group_offsets(GROUP)[partition])


# Partitions that are added after the take-over


def taken_over(modes: Modes) -> int:
    """Let micro-batches take over from a continuous query; return the next batch."""
    modes.produce(0, 3)
    modes.run_continuously()
    modes.produce(3, 5)
    modes.run_batch(batch := next_batch(modes), 3, 5)
    modes.cluster.add_partitions("in", 3)
    return batch + 1


def test_a_late_task_does_not_begin_a_partition_that_is_new_to_the_sealed_group(modes):
    taken_over(modes)
    with (
        closing(modes.late_client()) as late,
        pytest.raises(QueryReplacedError, match="a micro-batch query took over"),
    ):
        late.assign(PartitionOffsets({T2: 0}))
    assert T2 not in modes.cluster.group_offsets(GROUP)


@pytest.mark.parametrize("is_known_from_log", [True, False])
def test_a_batch_takes_over_the_partitions_that_the_one_before_did_not_have(
    modes, is_known_from_log
):
    batch = taken_over(modes)
    if not is_known_from_log:
        forget_epochs(modes, batch)
    # Its task has begun before the group was sealed, or has not seen the seal.
    modes.cluster.commit(GROUP, {T0: 3, T1: 0})
    with closing(modes.late_client()) as late:
        late.assign(PartitionOffsets({T2: 0}))
        late.write(PolledRecords(T2, None, 2), row(100))
        plan(modes, batch, _0=5, _1=0, _2=2)
        modes.run_batch(batch, 100, 102)
        with pytest.raises(ProducerFencedError):
            late.poll(0)
    assert seal_of(modes, T2) == GroupSeal(batch_id=batch)
    assert modes.written() == [*range(5), 100, 101]


@pytest.mark.parametrize("is_known_from_log", [True, False])
def test_a_batch_does_not_write_what_was_committed_of_a_partition_that_is_new(
    modes, is_known_from_log
):
    batch = taken_over(modes)
    if not is_known_from_log:
        forget_epochs(modes, batch)
    modes.cluster.commit(GROUP, {T0: 3, T1: 0})
    with closing(modes.late_client()) as late:
        late.assign(PartitionOffsets({T2: 0}))
        late.write(PolledRecords(T2, None, 2), row(100))
        late.poll(0)
    plan(modes, batch, _0=5, _1=0, _2=2)
    with pytest.raises(MetadataLogError, match=r"of in-2 up to offset 2, .* at offset 0"):
        modes.sink().recover()


def test_a_partition_that_a_batch_had_taken_over_may_be_read_again(modes):
    """It was unsubscribed in between; what is read again is the user's decision."""
    batch = taken_over(modes)
    for number, ends in enumerate(({"_1": 0}, {"_1": 0, "_0": 5}), batch):
        plan(modes, number, **ends)
        modes.run_batch(number, 5 + number, 6 + number)


def test_a_query_that_never_was_continuous_has_no_group_to_seal(modes):
    modes.plan(0, 0)
    modes.run_batch(0, 0, 1)
    plan(modes, 1, _0=0, _1=0, _2=1)
    modes.run_batch(1, 1, 2)
    assert modes.cluster.group_offsets(GROUP) == {}


def test_a_batch_of_another_kind_of_source_has_no_partitions_to_take_over(modes):
    for number in range(2):
        content = write_batch_end(PartitionOffsets({T0: 0}), 1) + b"\n-"
        assert modes.log("offsets").add(number, content)
        modes.run_batch(number, number, number + 1)
    assert modes.written() == [0, 1]


# Copies, which have a prefix of their own


def test_a_copy_does_not_take_over_the_group_of_the_original(modes):
    modes.produce(0, 3)
    modes.run_continuously()
    modes.plan(next_batch(modes), 3)
    with closing(modes.late_client()) as original:
        original.assign(PartitionOffsets({T0: 3}))
        original.write(PolledRecords(T0, None, 4), row(3))
        with pytest.raises(MetadataLogError, match="'transactionalIdPrefix' was 'pyspark-kafka'"):
            modes.sink(transactionalIdPrefix="copy").recover()
        original.poll(0)
    assert modes.cluster.committed(GROUP)[T0] == 4
    assert seal_of(modes, T0) == GroupSeal()


@pytest.mark.parametrize("is_known_from_log", [True, False])
def test_a_copy_does_not_seal_partitions_of_the_original(modes, is_known_from_log):
    batch = taken_over(modes)
    if not is_known_from_log:
        forget_epochs(modes, batch)
    plan(modes, batch, _0=5, _1=0, _2=0)
    modes.sink(transactionalIdPrefix="copy").recover()
    assert T2 not in modes.cluster.group_offsets(GROUP)


# Seals of other drivers


def take_over(modes: Modes, seal: GroupSeal) -> None:
    transactions = MemoryTransactions(modes.cluster)
    take_over_group(transactions, GROUP, {T0: 3, T1: 0}, seal)


def test_a_late_driver_does_not_take_over_from_a_later_batch(modes):
    modes.produce(0, 3)
    modes.run_continuously()
    modes.plan(batch := next_batch(modes), 3)
    take_over(modes, GroupSeal(batch_id=batch + 1))
    with pytest.raises(MetadataLogError, match=f"with batch {batch + 1}, .* is {batch}"):
        modes.sink().recover()
    for partition in (T0, T1):
        assert seal_of(modes, partition) == GroupSeal(batch_id=batch + 1)


def test_a_driver_that_was_suspended_while_another_took_over_does_not_lower_its_seal(
    modes, monkeypatch
):
    modes.produce(0, 3)
    modes.run_continuously()
    modes.plan(batch := next_batch(modes), 3)
    begin, is_first = MemoryTransactions.begin, iter([True])

    def take_over_first(transactions: Any, name: str) -> Any:
        if next(is_first, False):
            take_over(modes, GroupSeal(batch_id=batch + 1))
        return begin(transactions, name)

    monkeypatch.setattr(MemoryTransactions, "begin", take_over_first)
    with pytest.raises(MetadataLogError, match=f"with batch {batch + 1}"):
        modes.sink().recover()
    with (
        closing(client_of(modes, batch)) as late,
        pytest.raises(QueryReplacedError, match=f"with batch {batch + 1}"),
    ):
        late.assign(PartitionOffsets({T0: 3}))


def test_a_driver_that_died_after_its_seal_takes_over_with_the_same_batch_again(modes):
    modes.produce(0, 3)
    modes.run_continuously()
    modes.plan(batch := next_batch(modes), 3)
    modes.sink().recover()
    modes.run_batch(batch, 3, 3)
    assert seal_of(modes, T0) == GroupSeal(batch_id=batch)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (GroupSeal(batch_id=7), GroupSeal(run_id="r")),
        (GroupSeal(run_id="r"), GroupSeal(batch_id=7)),
        (GroupSeal(7, "r"), GroupSeal(batch_id=5)),
    ],
)
def test_a_seal_keeps_what_the_one_before_excludes(modes, first, second):
    take_over(modes, first)
    take_over(modes, second)
    assert seal_of(modes, T0) == GroupSeal(7, "r")


def test_a_driver_that_is_refused_fences_no_task(modes):
    modes.produce(0, 3)
    modes.run_continuously()
    with closing(client_of(modes, next_batch(modes), "live")) as live:
        live.assign(PartitionOffsets({T0: 3, T1: 0}))
        for offset in (4, 5):
            live.write(PolledRecords(T0, None, offset), row(offset - 1))
            live.poll(0)
            if offset == 4:
                modes.plan(next_batch(modes), 3)
                with pytest.raises(MetadataLogError, match="up to offset 4"):
                    modes.sink().recover()
    assert modes.cluster.committed(GROUP)[T0] == 5


def test_a_driver_that_comes_after_a_later_batch_fences_no_task(modes):
    modes.produce(0, 3)
    modes.run_continuously()
    modes.plan(batch := next_batch(modes), 3)
    take_over(modes, GroupSeal(batch_id=batch + 1))
    with closing(client_of(modes, batch + 1, "live")) as live:
        live.assign(PartitionOffsets({T0: 3}))
        live.write(PolledRecords(T0, None, 4), row(3))
        with pytest.raises(MetadataLogError, match=f"with batch {batch + 1}"):
            modes.sink().recover()
        live.poll(0)
    assert modes.cluster.committed(GROUP)[T0] == 4


def test_a_take_over_has_one_deadline(modes, monkeypatch):
    """Every call would have the whole time otherwise, for each partition and attempt."""
    inside, calls = [False], []

    @contextmanager
    def one_deadline(_transactions: Any) -> Any:
        inside[0] = True
        yield
        inside[0] = False

    for name in ("begin", "committed", "commit_offset"):
        call = getattr(MemoryTransactions, name)

        def noted(*given: Any, _call: Any = call, **named: Any) -> Any:
            calls.append(inside[0])
            return _call(*given, **named)

        monkeypatch.setattr(MemoryTransactions, name, noted)
    monkeypatch.setattr(MemoryTransactions, "one_deadline", one_deadline)
    take_over(modes, GroupSeal(batch_id=1))
    assert calls
    assert all(calls)
    assert not inside[0]


def test_a_query_whose_continuous_form_cannot_run_goes_on_at_the_offsets_that_it_is_told(modes):
    """As ``pyspark-kafka offsets rewrite`` writes them."""
    modes.produce(0, 3)
    modes.run_continuously()
    with closing(modes.late_client()) as late:
        late.assign(PartitionOffsets({T0: 3}))
        late.write(PolledRecords(T0, None, 4), row(3))
        late.poll(0)
    modes.plan(batch := next_batch(modes), 5)
    with pytest.raises(MetadataLogError, match="offsets rewrite CHECKPOINT --to FILE") as caught:
        modes.sink().recover()
    assert '\'{"in":{"0":4}}\' to a file' in str(caught.value)
    offsets, commits, backups = map(modes.log, ("offsets", "commits", BACKUPS))
    tool = OffsetCheckpoint(offsets, commits, backups, epoch_ms)
    point = tool.read()
    tool.change(point, point.moved_to({"0": PartitionOffsets({T0: 4})}))
    modes.run_batch(batch, 4, 4)
    modes.plan(batch + 1, 5)
    modes.run_batch(batch + 1, 4, 5)
    assert modes.written() == list(range(5))
