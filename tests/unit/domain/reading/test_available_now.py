import copy
import pickle

import pytest

from pyspark_kafka.domain.errors import Fault
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.available_now import (
    AvailableNowError,
    EndBeyondLatestError,
    EndBeyondPrefetchedError,
    LostPartitionsError,
    PartitionsNotPrefetchedError,
    check_available_now,
)
from pyspark_kafka.domain.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
RESTART = (
    "The error could be transient - restart your query, and report if you still see the same issue."
)
Offsets = dict[TopicPartition, int]

FAILURES = [
    (
        {T0: 5, T1: 7},
        {T0: 5},
        {T0: 5, T1: 7},
        PartitionsNotPrefetchedError,
        (
            "[MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED] "
            "Kafka data source in Trigger.AvailableNow should provide the same topic partitions "
            f"in pre-fetched offset to end offset for each microbatch. {RESTART}\n"
            "topic-partitions for pre-fetched offset: Set(t-0, t-1), "
            "topic-partitions for end offset: Set(t-0)."
        ),
    ),
    (
        {T0: 5, T1: 7},
        {T0: 5, T1: 8},
        {T0: 5, T1: 9},
        EndBeyondPrefetchedError,
        (
            "[END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED] "
            "For Kafka data source with Trigger.AvailableNow, end offset should have lower or "
            f"equal offset per each topic partition than pre-fetched offset. {RESTART}\n"
            "pre-fetched offset: Map(t-0 -> 5, t-1 -> 7), "
            "end offset: Map(t-0 -> 5, t-1 -> 8)."
        ),
    ),
    (
        {T0: 5, T1: 7},
        {T0: 5, T1: 7},
        {T0: 5},
        LostPartitionsError,
        (
            "[LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW] "
            "Some of partitions in Kafka topic(s) have been lost during running query with "
            f"Trigger.AvailableNow. {RESTART}\n"
            "topic-partitions for latest offset: Set(t-0), "
            "topic-partitions for end offset: Set(t-0, t-1)"
        ),
    ),
    (
        {T0: 5},
        {T0: 5},
        {T0: 4},
        EndBeyondLatestError,
        (
            "[END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST"
            "_WITH_TRIGGER_AVAILABLENOW] "
            "Some of partitions in Kafka topic(s) report available offset which is less than end "
            f"offset during running query with Trigger.AvailableNow. {RESTART}\n"
            "latest offset: Map(t-0 -> 4), end offset: Map(t-0 -> 5)"
        ),
    ),
]


def failure(prefetched: Offsets, end: Offsets, latest: Offsets) -> AvailableNowError:
    """Return the error of a check that must fail."""
    with pytest.raises(AvailableNowError) as caught:
        check_available_now(*map(PartitionOffsets, (prefetched, end, latest)))
    return caught.value


@pytest.mark.parametrize(
    ("prefetched", "end", "latest", "kind", "text"),
    FAILURES,
    ids=[row[3].__name__ for row in FAILURES],
)
def test_a_failure_has_the_words_of_the_jvm_connector(prefetched, end, latest, kind, text):
    error = failure(prefetched, end, latest)
    assert type(error) is kind
    assert str(error) == text
    assert error.fault is Fault.CLUSTER


@pytest.mark.parametrize("row", FAILURES, ids=[row[3].__name__ for row in FAILURES])
def test_pickle(row):
    error = failure(*row[:3])
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert (twin.condition, twin.message) == (error.condition, error.message)


@pytest.mark.parametrize(
    ("prefetched", "end", "latest"),
    [
        ({}, {}, {}),
        ({T0: 5, T1: 7}, {T0: 5, T1: 7}, {T0: 5, T1: 7}),
        ({T0: 5, T1: 7}, {T0: 3, T1: 0}, {T0: 3, T1: 9}),
        ({T0: 5}, {T0: 5}, {T0: 5, T1: 7}),
    ],
)
def test_a_batch_may_end_up_to_what_was_found_first(prefetched, end, latest):
    check_available_now(*map(PartitionOffsets, (prefetched, end, latest)))


@pytest.mark.parametrize(
    ("end", "latest", "kind"),
    [
        ({T1: 9}, {}, PartitionsNotPrefetchedError),
        ({T0: 6}, {}, EndBeyondPrefetchedError),
        ({T0: 5}, {T1: 1}, LostPartitionsError),
    ],
)
def test_the_jvm_connectors_first_problem_is_told(end, latest, kind):
    assert type(failure({T0: 5}, end, latest)) is kind
