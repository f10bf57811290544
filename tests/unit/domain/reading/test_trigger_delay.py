from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.reading.trigger_delay import Decision, TriggerDelay
from pyspark_kafka.domain.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
NEVER = TriggerDelay()
AT_1000 = TriggerDelay(1_000)
WAITED = "Maximum wait time is passed, triggering batch"
NOT_ENOUGH = "Delaying batch as number of records available is less than minOffsetsPerTrigger"


@given(now=st.integers(), min_rows=st.integers(0), max_delay_ms=st.integers(0))
def test_first_batch(now: int, min_rows: int, max_delay_ms: int) -> None:
    """The first batch runs at any time, however little there is."""
    decision = NEVER.decide(now, min_rows, max_delay_ms, {T0: 5}, {T0: 5})
    assert decision == Decision(is_delayed=False, next=TriggerDelay(now), message=WAITED)


@pytest.mark.parametrize(
    ("now_ms", "new_rows", "decision"),
    [
        (1_001, 14, Decision(is_delayed=True, next=AT_1000, message=NOT_ENOUGH)),
        (5_999, 14, Decision(is_delayed=True, next=AT_1000, message=NOT_ENOUGH)),
        (6_000, 14, Decision(is_delayed=False, next=TriggerDelay(6_000), message=WAITED)),
        (6_000, 15, Decision(is_delayed=False, next=TriggerDelay(6_000), message=WAITED)),
        (6_001, 0, Decision(is_delayed=False, next=TriggerDelay(6_001), message=WAITED)),
        (1_001, 15, Decision(is_delayed=False, next=TriggerDelay(1_001))),
        (5_999, 99, Decision(is_delayed=False, next=TriggerDelay(5_999))),
    ],
)
def test_later_batch(now_ms: int, new_rows: int, decision: Decision) -> None:
    """A later batch runs once there is enough to read, or after the delay, which then restarts."""
    assert AT_1000.decide(now_ms, 15, 5_000, {T0: 100 + new_rows}, {T0: 100}) == decision


@pytest.mark.parametrize(
    ("latest", "current", "is_delayed"),
    [
        ({T0: 10, T1: 5}, {T0: 0, T1: 0}, False),
        ({T0: 10, T1: 4}, {T0: 0, T1: 0}, True),
        ({T0: 110, T1: 5}, {T0: 100}, False),
        ({T0: 110, T1: 4}, {T0: 100}, True),
        ({T0: 110}, {T0: 100, T1: 0}, True),
        ({T0: 10, T1: 20}, {T0: 16, T1: 0}, True),
        ({}, {T0: 0}, True),
    ],
)
def test_new_rows(
    latest: dict[TopicPartition, int], current: dict[TopicPartition, int], is_delayed: bool
) -> None:
    """New are all offsets since the last batch, of new partitions all that they ever had."""
    assert AT_1000.decide(1_001, 15, 5_000, latest, current).is_delayed is is_delayed


def test_no_minimum() -> None:
    """Without a minimum every batch runs."""
    assert not AT_1000.decide(1_001, 0, 5_000, {T0: 5}, {T0: 5}).is_delayed
