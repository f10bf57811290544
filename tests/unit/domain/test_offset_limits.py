from __future__ import annotations

import pickle

import pytest
from hypothesis import given

from pyspark_kafka.domain.offset_limits import (
    Earliest,
    Latest,
    OffsetLimit,
    Specific,
    parse_offset_limit,
)
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

from .strategies import partition_offsets

T0 = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("earliest", Earliest()),
        ("earLiEst", Earliest()),
        (" EARLIEST\n", Earliest()),
        ("latest", Latest()),
        ("laTest", Latest()),
        ("\tLATEST ", Latest()),
        ('{"t":{"0":23}}', Specific(PartitionOffsets({T0: 23}))),
        (' {"t":{"0":-1}} ', Specific(PartitionOffsets({T0: -1}))),
        ('{"T":{"0":-2}}', Specific(PartitionOffsets({TopicPartition("T", 0): -2}))),
    ],
)
def test_limit(text: str, limit: OffsetLimit) -> None:
    """A limit is earliest or latest in any case, or offsets by partition, space around it aside."""
    assert parse_offset_limit(text) == limit


@given(partition_offsets)
def test_specific_offsets(offsets: PartitionOffsets) -> None:
    """Any offsets are read from the JSON that they are written as."""
    assert parse_offset_limit(offsets.to_json()) == Specific(offsets)


@pytest.mark.parametrize("text", ["", "abc", "earliest,latest", "5", '{"t":[0]}'])
def test_no_limit(text: str) -> None:
    """What is none of these is refused in the JVM connector's words."""
    with pytest.raises(ValueError, match=r"^Expected") as caught:
        parse_offset_limit(text)
    assert str(caught.value) == (
        f'Expected e.g. {{"topicA":{{"0":23,"1":-1}},"topicB":{{"0":-2}}}}, got {text}'
    )


def test_limits_are_told_apart() -> None:
    """No kind of limit equals another one, and all of them survive a pickle."""
    limits = [
        Earliest(),
        Latest(),
        Specific(PartitionOffsets()),
        Specific(PartitionOffsets({T0: 1})),
    ]
    assert len(set(limits)) == len(limits)
    assert pickle.loads(pickle.dumps(limits)) == limits  # noqa: S301
