import copy
import pickle
from pathlib import Path

import pytest

from pyspark_kafka.domain.errors import Fault
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.available_now import (
    AvailableNowError,
    EndBeyondPrefetchedError,
    LostPartitionsError,
    PartitionsNotPrefetchedError,
    check_available_now,
)
from pyspark_kafka.domain.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)

Offsets = dict[TopicPartition, int]

FAILURES = [
    ({T0: 5, T1: 7}, {T0: 5}, {T0: 5, T1: 7}),
    ({T0: 5, T1: 7}, {T0: 5, T1: 8}, {T0: 5, T1: 9}),
    ({T0: 5, T1: 7}, {T0: 5, T1: 7}, {T0: 5}),
    ({T0: 5}, {T0: 5}, {T0: 4}),
]
TEXTS = Path(__file__).with_name("available_now.txt").read_text("utf-8").rstrip("\n").split("\n\n")
"""The name and the text of each failure, in their order."""


def failure(prefetched: Offsets, end: Offsets, latest: Offsets) -> AvailableNowError:
    with pytest.raises(AvailableNowError) as caught:
        check_available_now(*map(PartitionOffsets, (prefetched, end, latest)))
    return caught.value


@pytest.mark.parametrize(("offsets", "text"), [*zip(FAILURES, TEXTS, strict=True)])
def test_a_failure_has_the_words_of_the_jvm_connector(offsets, text):
    error = failure(*offsets)
    assert error.fault is Fault.CLUSTER
    for twin in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301
        assert f"{type(twin).__name__}\n{twin}" == text


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
