import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.continuous.epochs import Epoch, EpochCoordinator, OutputTracker, spread
from pyspark_kafka.domain.continuous.messages import TaskId
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
TASK, OTHER = TaskId(1, 0, "a"), TaskId(1, 1, "a")


def offsets(*values: int) -> PartitionOffsets:
    return PartitionOffsets({TopicPartition("t", at): value for at, value in enumerate(values)})


def running(*values: int) -> EpochCoordinator:
    coordinator = EpochCoordinator(Epoch(4, offsets(*values)))
    coordinator.assign(TASK, [T0])
    coordinator.assign(OTHER, [T1])
    return coordinator


def test_a_task_begins_where_the_last_epoch_ended():
    assert EpochCoordinator(Epoch(4, offsets(5, 6))).assign(TASK, [T1]) == {T1: 6}


def test_there_is_no_epoch_before_anything_is_acknowledged():
    assert running(5, 6).next_epoch() is None


def test_an_epoch_has_the_offsets_of_all_partitions():
    coordinator = running(5, 6)
    coordinator.report(TASK, offsets(9))
    assert coordinator.next_epoch() == Epoch(5, offsets(9, 6))


def test_an_epoch_is_the_same_until_it_is_committed():
    coordinator = running(5, 6)
    coordinator.report(TASK, offsets(9))
    epoch = coordinator.next_epoch()
    assert epoch is not None
    assert coordinator.next_epoch() == epoch
    coordinator.committed(epoch)
    assert coordinator.last == epoch
    assert coordinator.next_epoch() is None


def test_what_an_earlier_attempt_reports_is_ignored():
    coordinator = running(5, 6)
    attempt = TaskId(1, 0, "b")
    coordinator.assign(attempt, [T0])
    assert not coordinator.report(TASK, offsets(9))
    assert coordinator.next_epoch() is None
    assert coordinator.report(attempt, offsets(8))
    assert coordinator.offsets == offsets(8, 6)


def test_what_is_reported_after_a_release_is_ignored():
    coordinator = running(5, 6)
    coordinator.release()
    assert not coordinator.report(TASK, offsets(9))
    assert coordinator.offsets == offsets(5, 6)


def test_a_task_cannot_report_the_partitions_of_another():
    coordinator = running(5, 6)
    assert not coordinator.report(TASK, offsets(9, 9))
    assert coordinator.offsets == offsets(9, 6)


def test_a_new_partition_belongs_to_the_next_epoch():
    coordinator = running(5, 6)
    coordinator.add(PartitionOffsets({T2: 0}))
    coordinator.assign(OTHER, [T2])
    assert coordinator.next_epoch() == Epoch(5, offsets(5, 6, 0))
    assert coordinator.report(OTHER, PartitionOffsets({T1: 7, T2: 1}))
    assert coordinator.offsets == offsets(5, 7, 1)


def test_a_deleted_partition_is_in_no_later_epoch():
    coordinator = running(5, 6)
    coordinator.remove([T0, T2])
    assert coordinator.next_epoch() == Epoch(5, PartitionOffsets({T1: 6}))
    assert not coordinator.report(TASK, offsets(9))
    assert coordinator.offsets == {T1: 6}


def test_a_partition_may_begin_again_at_a_lower_offset():
    coordinator = running(5, 6)
    coordinator.report(TASK, offsets(0))
    assert coordinator.next_epoch() == Epoch(5, offsets(0, 6))


def test_a_planned_batch_is_committed_once_its_end_is_acknowledged():
    planned = Epoch(5, offsets(7, 8))
    coordinator = EpochCoordinator(Epoch(4, offsets(5, 6)), planned)
    coordinator.assign(TASK, [T0, T1])
    coordinator.report(TASK, offsets(9))
    assert coordinator.next_epoch() is None
    coordinator.report(TASK, offsets(9, 8))
    assert coordinator.next_epoch() == planned
    coordinator.committed(planned)
    assert coordinator.planned is None
    assert coordinator.next_epoch() == Epoch(6, offsets(9, 8))


def test_a_deleted_partition_does_not_hold_a_planned_batch_back():
    planned = Epoch(0, offsets(7, 8))
    coordinator = EpochCoordinator(Epoch(-1, offsets(5, 6)), planned)
    coordinator.assign(TASK, [T0])
    coordinator.remove([T1])
    coordinator.report(TASK, offsets(7))
    assert coordinator.next_epoch() == planned


def partitions(count: int, topic: str = "t") -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def test_partitions_go_to_slots_in_turns():
    zero, one, two = partitions(3)
    assert spread([two, zero, one], {0: (), 1: ()}) == {0: [zero, two], 1: [one]}


def test_a_new_partition_goes_to_the_slot_with_the_fewest():
    assert spread(partitions(1), {0: partitions(2, "u"), 1: partitions(1, "v")}) == {
        1: partitions(1)
    }


def test_without_slots_nothing_can_be_read():
    with pytest.raises(ValueError, match="no slot"):
        spread(partitions(1), {})


@given(st.integers(0, 50), st.integers(1, 9))
def test_slots_differ_by_one_partition_at_most(count, slots):
    found = spread(partitions(count), dict.fromkeys(range(slots), ()))
    sizes = [len(found.get(slot, ())) for slot in range(slots)]
    assert sum(sizes) == count
    assert max(sizes) - min(sizes) <= 1


T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_an_output_without_rows_is_acknowledged_at_once():
    tracker = OutputTracker()
    tracker.add(T0, 5, 0)
    assert tracker.has_acknowledged
    assert tracker.take_acknowledged() == {T0: 5}
    assert tracker.is_settled


def test_an_offset_is_returned_once():
    tracker = OutputTracker()
    tracker.add(T0, 5, 0)
    tracker.take_acknowledged()
    assert tracker.take_acknowledged() == {}


def test_a_later_output_waits_for_an_earlier_one():
    tracker = OutputTracker()
    first, second = tracker.add(T0, 5, 2), tracker.add(T0, 9, 1)
    tracker.acknowledge(second, 1)
    assert tracker.take_acknowledged() == {}
    tracker.acknowledge(first, 1)
    assert not tracker.is_settled
    tracker.acknowledge(first, 1)
    assert tracker.take_acknowledged() == {T0: 9}


def test_outputs_of_a_forgotten_partition_change_nothing():
    tracker = OutputTracker()
    output = tracker.add(T0, 5, 1)
    other = tracker.add(T1, 3, 1)
    tracker.forget(T0)
    tracker.acknowledge(output, 1)
    tracker.acknowledge(other, 1)
    assert tracker.take_acknowledged() == {T1: 3}


def test_what_a_forgotten_partition_had_reached_is_not_returned():
    tracker = OutputTracker()
    tracker.add(T0, 5, 0)
    tracker.forget(T0)
    assert tracker.take_acknowledged() == {}
    output = tracker.add(T0, 3, 1)
    tracker.acknowledge(output, 1)
    assert tracker.take_acknowledged() == {T0: 3}


@given(st.lists(st.integers(0, 3), min_size=1), st.randoms())
def test_the_offset_is_that_of_the_last_output_before_which_all_is_acknowledged(sizes, random):
    tracker = OutputTracker()
    outputs = [tracker.add(T0, at + 1, rows) for at, rows in enumerate(sizes)]
    acknowledgements = [output for output in outputs for _ in range(output.unacknowledged)]
    random.shuffle(acknowledgements)
    seen = tracker.take_acknowledged().get(T0, 0)
    for output in acknowledgements:
        tracker.acknowledge(output, 1)
        seen = tracker.take_acknowledged().get(T0, seen)
        expected = next(
            (at for at, each in enumerate(outputs) if not each.is_acknowledged), len(outputs)
        )
        assert seen == expected
    assert tracker.is_settled
