from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.continuous.output_tracker import Output, OutputTracker
from pyspark_kafka.domain.topic_partition import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def opened(tracker: OutputTracker, next_offset: int, rows: int) -> Output:
    output = tracker.open(T0, next_offset)
    output.unacknowledged += rows
    tracker.close(output)
    return output


def test_an_output_without_rows_is_acknowledged_when_it_is_closed() -> None:
    tracker = OutputTracker()
    output = tracker.open(T0, 5)
    assert tracker.take_acknowledged() == {}
    tracker.close(output)
    assert tracker.has_acknowledged
    assert tracker.take_acknowledged() == {T0: 5}
    assert tracker.is_settled


def test_an_offset_is_returned_once() -> None:
    tracker = OutputTracker()
    opened(tracker, 5, 0)
    tracker.take_acknowledged()
    assert tracker.take_acknowledged() == {}


def test_a_later_output_waits_for_an_earlier_one() -> None:
    tracker = OutputTracker()
    first, second = opened(tracker, 5, 2), opened(tracker, 9, 1)
    tracker.acknowledge(second, 1)
    assert tracker.take_acknowledged() == {}
    tracker.acknowledge(first, 1)
    assert not tracker.is_settled
    tracker.acknowledge(first, 1)
    assert tracker.take_acknowledged() == {T0: 9}


def test_rows_that_are_acknowledged_early_do_not_complete_an_open_output() -> None:
    tracker = OutputTracker()
    output = tracker.open(T0, 5)
    output.unacknowledged += 1
    tracker.acknowledge(output, 1)
    assert tracker.take_acknowledged() == {}
    tracker.close(output)
    assert tracker.take_acknowledged() == {T0: 5}


def test_outputs_of_a_forgotten_partition_change_nothing() -> None:
    tracker = OutputTracker()
    output = opened(tracker, 5, 1)
    other = tracker.open(T1, 3)
    tracker.forget(T0)
    tracker.acknowledge(output, 1)
    tracker.close(other)
    assert tracker.take_acknowledged() == {T1: 3}


def test_what_a_forgotten_partition_had_reached_is_not_returned() -> None:
    tracker = OutputTracker()
    opened(tracker, 5, 0)
    tracker.forget(T0)
    assert tracker.take_acknowledged() == {}
    output = opened(tracker, 3, 1)
    tracker.acknowledge(output, 1)
    assert tracker.take_acknowledged() == {T0: 3}


@given(st.lists(st.integers(0, 3), min_size=1), st.randoms())
def test_the_offset_is_that_of_the_last_output_before_which_all_is_acknowledged(
    sizes: list[int], random: Random
) -> None:
    tracker = OutputTracker()
    outputs = [opened(tracker, at + 1, rows) for at, rows in enumerate(sizes)]
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
