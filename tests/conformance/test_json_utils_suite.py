"""JsonUtilsSuite: partitions and offsets as JSON."""

from __future__ import annotations

import json

import pytest

from pyspark_kafka.domain.offset_limits import Specific, parse_offset_limit
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.subscription import Assign
from pyspark_kafka.domain.topic_partition import TopicPartition

from .peer import Held, peer

SUITE = "JsonUtilsSuite"

A0, A1, B4 = TopicPartition("topicA", 0), TopicPartition("topicA", 1), TopicPartition("topicB", 4)


@peer(SUITE, "parsing partitions", Held.LIBRARY)
def test_parsing_partitions() -> None:
    """Partitions stand in lists by topic."""
    read = Assign.from_json('{"topicB":[4],"topicA":[1,0]}')
    assert read.partitions == {A0, A1, B4}
    assert read == Assign.from_json('{"topicA":[0,1],"topicB":[4]}')


@peer(SUITE, "parsing partitionOffsets", Held.LIBRARY)
def test_parsing_partition_offsets() -> None:
    """Offsets stand by topic and partition, and are written as they are read."""
    text = '{"topicA":{"0":23,"1":-1},"topicB":{"4":-2}}'
    read = PartitionOffsets.from_json(text)
    assert read == {A0: 23, A1: -1, B4: -2}
    assert read.to_json() == text


@peer(SUITE, "parsing specificOffsets", Held.LIBRARY)
def test_parsing_specific_offsets() -> None:
    """An option holds offsets in the same form, with -1 for latest and -2 for earliest."""
    read = parse_offset_limit('{"topicA":{"0":23,"1":-1},"topicB":{"4":-2}}')
    assert read == Specific(PartitionOffsets({A0: 23, A1: -1, B4: -2}))


@peer(SUITE, "parsing specificOffsets with topic-level earliest/latest", Held.LIBRARY)
def test_parsing_specific_offsets_with_topic_level_earliest_latest() -> None:
    """A topic may have one word for all of its partitions."""
    read = parse_offset_limit('{"topicA":"earliest","topicB":"latest"}')
    assert read == Specific(PartitionOffsets(), (("topicA", -2), ("topicB", -1)))


@peer(SUITE, "parsing specificOffsets mixing topic-level and partition-level values", Held.LIBRARY)
def test_parsing_specific_offsets_mixing_topic_level_and_partition_level_values() -> None:
    """Topics with a word, in any case, stand beside topics with offsets."""
    for word in ("earliest", "EARLIEST", "EarLiest"):
        read = parse_offset_limit(json.dumps({"topicA": word, "topicB": {"4": 23}}))
        assert read == Specific(PartitionOffsets({B4: 23}), (("topicA", -2),))


@peer(SUITE, "parsing specificOffsets rejects a topic given in both forms", Held.LIBRARY)
def test_parsing_specific_offsets_rejects_a_topic_given_in_both_forms() -> None:
    """A topic with a word and with offsets is refused, whichever comes first."""
    for text in (
        '{"topicA":"earliest","topicA":{"0":23}}',
        '{"topicA":{"0":23},"topicA":"latest"}',
    ):
        with pytest.raises(ValueError, match="'topicA' has both a topic-level offset"):
            parse_offset_limit(text)


@peer(SUITE, "parsing specificOffsets rejects malformed json", Held.LIBRARY)
@pytest.mark.parametrize(
    "text",
    [
        '{"topicA":"first"}',
        '{"topicA":["earliest"]}',
        '{"topicA":{"0":"earliest"}}',
        '["earliest"]',
        '"earliest"',
        "first",
        "not json",
    ],
)
def test_parsing_specific_offsets_rejects_malformed_json(text: str) -> None:
    """Any other shape is refused with the text that was given."""
    with pytest.raises(ValueError, match=r"Expected e\.g\. ") as refused:
        parse_offset_limit(text)
    assert str(refused.value).endswith(f", got {text}")
