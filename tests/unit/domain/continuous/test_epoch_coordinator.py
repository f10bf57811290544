from __future__ import annotations

from pyspark_kafka.domain.continuous.epoch_coordinator import Epoch, EpochCoordinator
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


def test_a_task_begins_where_the_last_epoch_ended() -> None:
    assert EpochCoordinator(Epoch(4, offsets(5, 6))).assign(TASK, [T1]) == {T1: 6}


def test_there_is_no_epoch_before_anything_is_acknowledged() -> None:
    assert running(5, 6).next_epoch() is None


def test_an_epoch_has_the_offsets_of_all_partitions() -> None:
    coordinator = running(5, 6)
    coordinator.report(TASK, offsets(9))
    assert coordinator.next_epoch() == Epoch(5, offsets(9, 6))


def test_an_epoch_is_the_same_until_it_is_committed() -> None:
    coordinator = running(5, 6)
    coordinator.report(TASK, offsets(9))
    epoch = coordinator.next_epoch()
    assert epoch is not None
    assert coordinator.next_epoch() == epoch
    coordinator.committed(epoch)
    assert coordinator.last == epoch
    assert coordinator.next_epoch() is None


def test_what_an_earlier_attempt_reports_is_ignored() -> None:
    coordinator = running(5, 6)
    attempt = TaskId(1, 0, "b")
    coordinator.assign(attempt, [T0])
    assert not coordinator.report(TASK, offsets(9))
    assert coordinator.next_epoch() is None
    assert coordinator.report(attempt, offsets(8))
    assert coordinator.offsets == offsets(8, 6)


def test_what_is_reported_after_a_release_is_ignored() -> None:
    coordinator = running(5, 6)
    coordinator.release()
    assert not coordinator.report(TASK, offsets(9))
    assert coordinator.offsets == offsets(5, 6)


def test_a_task_cannot_report_the_partitions_of_another() -> None:
    coordinator = running(5, 6)
    assert not coordinator.report(TASK, offsets(9, 9))
    assert coordinator.offsets == offsets(9, 6)


def test_a_new_partition_belongs_to_the_next_epoch() -> None:
    coordinator = running(5, 6)
    coordinator.add(PartitionOffsets({T2: 0}))
    coordinator.assign(OTHER, [T2])
    assert coordinator.next_epoch() == Epoch(5, offsets(5, 6, 0))
    assert coordinator.report(OTHER, PartitionOffsets({T1: 7, T2: 1}))
    assert coordinator.offsets == offsets(5, 7, 1)


def test_a_deleted_partition_is_in_no_later_epoch() -> None:
    coordinator = running(5, 6)
    coordinator.remove([T0, T2])
    assert coordinator.next_epoch() == Epoch(5, PartitionOffsets({T1: 6}))
    assert not coordinator.report(TASK, offsets(9))
    assert coordinator.offsets == {T1: 6}


def test_a_partition_may_begin_again_at_a_lower_offset() -> None:
    coordinator = running(5, 6)
    coordinator.report(TASK, offsets(0))
    assert coordinator.next_epoch() == Epoch(5, offsets(0, 6))


def test_a_planned_batch_is_committed_once_its_end_is_acknowledged() -> None:
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


def test_a_deleted_partition_does_not_hold_a_planned_batch_back() -> None:
    planned = Epoch(0, offsets(7, 8))
    coordinator = EpochCoordinator(Epoch(-1, offsets(5, 6)), planned)
    coordinator.assign(TASK, [T0])
    coordinator.remove([T1])
    coordinator.report(TASK, offsets(7))
    assert coordinator.next_epoch() == planned
