import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.offset_limits import (
    AtOffset,
    Earliest,
    Latest,
    Specific,
    parse_global_timestamp,
    parse_offset_limit,
    parse_starting_offsets,
    parse_timestamps,
)
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..strategies import LARGEST_OFFSET, partition_offsets, topic_partitions

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
U0 = TopicPartition("u", 0)
OFFSETS_EXAMPLE = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
TIMESTAMPS_EXAMPLE = (
    '{"topicA": {"0": 123456789, "1": 123456789},\n"topicB": {"0": 123456789, "1": 123456789}}'
)


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
        ('{"t":"earliest"}', Specific(PartitionOffsets(), (("t", -2),))),
        ('{"u":"LATEST","t":"Earliest"}', Specific(PartitionOffsets(), (("t", -2), ("u", -1)))),
        (
            '{"u":"latest","t":{"0":5,"1":-2}}',
            Specific(PartitionOffsets({T0: 5, T1: -2}), (("u", -1),)),
        ),
        ("{}", Specific(PartitionOffsets())),
    ],
)
def test_a_limit_is_a_word_or_offsets_by_partition(text, limit):
    assert parse_offset_limit(text) == limit


@given(partition_offsets)
def test_specific_offsets(offsets):
    assert parse_offset_limit(offsets.to_json()) == Specific(offsets)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "earliest,latest",
        "5",
        "[]",
        '{"t":[0]}',
        '{"t":"first"}',
        '{"t":"first","u":{"0":1}}',
        '{"t":{"0":"earliest"}}',
        '{"t":{"0":-3}}',
        '{"t":{"0":true}}',
        '{"t":{"0":9223372036854775808}}',
        '{"t":null}',
        '{"t":5}',
        '{"":{"0":1}}',
        '{"t":{"x":1}}',
        '{"t":{"0":1,"0":2}}',
        '{"t":{"0":1},"t":{"1":2}}',
        '{"t":"earliest","t":"latest"}',
    ],
)
def test_other_limits_are_refused_in_the_jvm_connectors_words(text):
    with pytest.raises(ValueError, match=r"^Expected") as caught:
        parse_offset_limit(text)
    assert str(caught.value) == f"Expected e.g. {OFFSETS_EXAMPLE}, got {text}"


@pytest.mark.parametrize(
    ("text", "meant"),
    [("earlyest", "earliest"), ("Latests", "latest"), ("beginning", "earliest"), ("now", "latest")],
)
def test_words_that_are_nearly_right_get_a_suggestion(text, meant):
    for parse in (parse_offset_limit, parse_starting_offsets):
        with pytest.raises(ValueError, match=f"got {text}. Did you mean '{meant}'\\?$"):
            parse(text)
    with pytest.raises(ValueError, match=r"got groups. Did you mean 'group'\?$"):
        parse_starting_offsets("groups")


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ('{"t":"earliest","t":{"0":1}}', "t"),
        ('{"t":{"0":1},"t":"latest"}', "t"),
        ('{"v":"earliest","u":{"0":1},"u":"latest","v":{"0":1}}', "u"),
    ],
)
def test_topic_in_both_forms(text, topic):
    with pytest.raises(ValueError, match="both a topic-level offset") as caught:
        parse_offset_limit(text)
    assert str(caught.value) == (
        f"Topic '{topic}' has both a topic-level offset and offsets of partitions, got {text}"
    )


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_jvm_long_is_a_time(time):
    assert parse_global_timestamp(str(time)) == time


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("{}", ()),
        ('{"t":{}}', ()),
        ('{"t":{"0":1700000000000}}', ((T0, 1_700_000_000_000),)),
        (' {"u":{"0":7},"t":{"1":-1,"0":0}} ', ((T0, 0), (T1, -1), (U0, 7))),
    ],
)
def test_times_are_read_in_the_order_of_partitions(text, times):
    assert parse_timestamps(text) == times


@given(st.dictionaries(topic_partitions, st.integers(-LARGEST_OFFSET, LARGEST_OFFSET), max_size=6))
def test_any_times_are_read_from_their_json(times):
    topics: dict[str, dict[str, int]] = {}
    for partition, time in times.items():
        topics.setdefault(partition.topic, {})[str(partition.partition)] = time
    assert parse_timestamps(json.dumps(topics)) == tuple(sorted(times.items()))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "[]",
        "5",
        '{"t":5}',
        '{"t":[0]}',
        '{"t":"earliest"}',
        '{"t":{"0":"1"}}',
        '{"t":{"0":1.5}}',
        '{"t":{"0":true}}',
        '{"t":{"0":null}}',
        '{"t":{"0":9223372036854775808}}',
        '{"t":{"-1":1}}',
        '{"":{"0":1}}',
        '{"t":{"0":1,"0":2}}',
        '{"t":{"0":1},"t":{"1":2}}',
    ],
)
def test_other_times_by_partition_are_refused_in_the_jvm_connectors_words(text):
    with pytest.raises(ValueError, match=r"^Expected") as caught:
        parse_timestamps(text)
    assert str(caught.value) == f"Expected e.g. {TIMESTAMPS_EXAMPLE}, got {text}"


@pytest.mark.parametrize(
    ("offset", "expected"), [(7, 7), (0, 5), (99, 9), (-1, 8), (-4, 5), (-100, 5)]
)
def test_the_nearest_offset_that_the_leader_holds_is_taken(offset, expected):
    assert AtOffset(offset).within(5, 9) == expected
