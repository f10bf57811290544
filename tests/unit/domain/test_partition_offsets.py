import copy
import json
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.partition_offsets import EARLIEST, LATEST, PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition

from .strategies import (
    LARGEST_OFFSET,
    close_topic_partitions,
    offset_numbers,
    partition_offsets,
    topic_partitions,
)

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
EMPTY = PartitionOffsets()


@pytest.mark.parametrize(
    ("offsets", "text"),
    [
        ({}, "{}"),
        ({T0: 1}, '{"t":{"0":1}}'),
        ({T0: LATEST, T1: EARLIEST}, '{"t":{"0":-1,"1":-2}}'),
        (
            {TopicPartition("b", 10): 1, TopicPartition("b", 2): 2, TopicPartition("a", 0): 1},
            '{"a":{"0":1},"b":{"2":2,"10":1}}',
        ),
        ({TopicPartition('tä\x01€"', 0): 1}, '{"tä\\u0001€\\"":{"0":1}}'),
        ({T0: LARGEST_OFFSET}, '{"t":{"0":9223372036854775807}}'),
    ],
)
def test_the_json_is_what_the_jvm_connector_writes(offsets, text):
    assert PartitionOffsets(offsets).to_json() == text
    assert PartitionOffsets.from_json(text) == offsets


@given(partition_offsets)
def test_json_round_trip(offsets):
    assert PartitionOffsets.from_json(offsets.to_json()) == offsets


@given(partition_offsets)
def test_dict_round_trip(offsets):
    assert PartitionOffsets.from_dict(offsets.to_dict()) == offsets
    assert json.loads(offsets.to_json()) == offsets.to_dict()


@given(st.dictionaries(close_topic_partitions, offset_numbers))
def test_topics_are_in_order_and_partitions_in_numeric_order(offsets):
    shuffled = PartitionOffsets(offsets)
    assert list(shuffled) == sorted(offsets)
    assert list(shuffled.to_dict()) == sorted({partition.topic for partition in offsets})
    for partitions in json.loads(shuffled.to_json()).values():
        assert list(partitions) == sorted(partitions, key=int)


@pytest.mark.parametrize(
    "layout", ['{ "t" : { "0" : 1 } }', '\n{"t":\t{"0":1}}\n', '{"\\u0074":{"0":1}}']
)
def test_json_is_read_in_any_layout(layout):
    assert PartitionOffsets.from_json(layout) == {T0: 1}


@pytest.mark.parametrize("text", ["{}", '{"t":{}}'])
def test_json_without_partitions_gives_no_offsets(text):
    assert PartitionOffsets.from_json(text) == EMPTY


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"t":{"0":1}',
        '{"t":1}',
        '{"t":null}',
        '{"t":[1]}',
        '{"t":{"x":1}}',
        '{"t":{"0":"1"}}',
        '{"t":{"0":true}}',
        '{"t":{"0":null}}',
        '{"t":{"0":1.5}}',
        '{"t":{"0":-3}}',
        '{"":{"0":1}}',
        '{"t":{"0":1,"0":2}}',
        '{"t":{"0":1},"t":{"1":2}}',
    ],
    ids=lambda text: text[:20],
)
def test_malformed_json_is_refused_in_the_jvm_connectors_words(text):
    with pytest.raises(ValueError, match=r"^Expected") as caught:
        PartitionOffsets.from_json(text)
    assert str(caught.value) == (
        f'Expected e.g. {{"topicA":{{"0":23,"1":-1}},"topicB":{{"0":-2}}}}, got {text}'
    )


@pytest.mark.parametrize(
    ("topics", "problem"),
    [
        ({"t": {"x": 1}}, "not a partition number: 'x'"),
        ({"t": {"0": True}}, "not an offset: True"),
        ({"t": {"0": -3}}, "not an offset: -3 for t-0"),
        ({"": {"0": 1}}, "a topic's name must not be empty"),
    ],
)
def test_malformed_dictionaries_are_refused_with_what_is_wrong(topics, problem):
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        PartitionOffsets.from_dict(topics)


@pytest.mark.parametrize("offset", [EARLIEST - 1, -(2**63)])
def test_nothing_below_minus_two_is_an_offset(offset):
    with pytest.raises(ValueError, match=f"^not an offset: {offset} for t-0$"):
        PartitionOffsets({T0: offset})


@given(partition_offsets)
def test_offsets_are_a_mapping(offsets):
    assert PartitionOffsets(offsets.items()) == offsets == dict(offsets)
    assert len(offsets) == len(list(offsets))
    assert [offsets[partition] for partition in offsets] == list(offsets.values())


def test_a_missing_partition_is_a_key_error():
    assert T1 not in PartitionOffsets({T0: 1})
    with pytest.raises(KeyError):
        PartitionOffsets({T0: 1})[T1]


@given(partition_offsets, partition_offsets)
def test_merge_prefers_newer(old, new):
    merged = old.merge(new)
    assert merged.keys() == old.keys() | new.keys()
    for partition, offset in merged.items():
        assert offset == (new[partition] if partition in new else old[partition])


def test_merge_leaves_its_parts_alone():
    old = PartitionOffsets({T0: 1})
    assert old.merge({T0: 5, T1: 2}) == PartitionOffsets({T0: 5, T1: 2})
    assert old == {T0: 1}


@given(partition_offsets, st.sets(close_topic_partitions | topic_partitions))
def test_a_restriction_keeps_the_wanted_partitions_and_adds_none(offsets, wanted):
    restricted = offsets.restrict(wanted)
    assert restricted.keys() == offsets.keys() & wanted
    assert restricted.items() <= offsets.items()
    assert restricted.restrict(wanted) == restricted


@given(partition_offsets)
def test_equality_and_hash(offsets):
    twin = PartitionOffsets(list(offsets.items())[::-1])
    assert twin == offsets
    assert {twin: "found"}[offsets] == "found"


@given(partition_offsets)
def test_offsets_differ_by_a_partition_or_an_offset(offsets):
    more = offsets.merge({TopicPartition("another topic", 0): 1})
    assert more.merge({TopicPartition("another topic", 0): 2}) != more
    assert more != PartitionOffsets(list(more.items())[1:])


@given(partition_offsets)
def test_pickle(offsets):
    unpickled = pickle.loads(pickle.dumps(offsets))  # noqa: S301
    assert isinstance(unpickled, PartitionOffsets)
    assert unpickled == offsets == copy.deepcopy(offsets)
    assert hash(unpickled) == hash(offsets)


@pytest.mark.parametrize("name", ["_offsets", "another"])
def test_immutability(name):
    offsets = PartitionOffsets({T0: 1})
    with pytest.raises(AttributeError, match=f"^PartitionOffsets is immutable: {name}$"):
        setattr(offsets, name, {T1: 2})
    with pytest.raises(AttributeError, match=f"^PartitionOffsets is immutable: {name}$"):
        delattr(offsets, name)
    assert offsets == {T0: 1}


def test_independence_of_what_it_was_built_from():
    source = {T0: 1}
    offsets = PartitionOffsets(source)
    source[T0] = 2
    offsets.to_dict()["t"]["0"] = 3
    assert offsets == {T0: 1}


def test_the_repr_shows_the_json():
    assert repr(PartitionOffsets({T0: 23})) == 'PartitionOffsets({"t":{"0":23}})'


@pytest.mark.parametrize(
    "text", ['{"t":{"0":9223372036854775808}}', '{"t":{"2147483648":1}}', '{"t":{"0":1,"00":2}}']
)
def test_numbers_that_kafka_does_not_have_are_refused(text):
    with pytest.raises(ValueError, match=r"Expected e\.g\."):
        PartitionOffsets.from_json(text)
