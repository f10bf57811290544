"""KafkaOffsetRangeLimitSuite: offsets of whole topics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.application.errors import TopicOffsetsMismatchError
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options import QueryKind, parse_source_options
from pyspark_kafka.domain.topic_partition import TopicPartition

from .peer import Held, peer

if TYPE_CHECKING:
    from pyspark_kafka.testing import KafkaWorld

    from .conftest import OpenContainer

SUITE = "KafkaOffsetRangeLimitSuite"


@peer(SUITE, "resolving topic-level offsets against the assigned partitions", Held.LIBRARY)
def test_resolving_topic_level_offsets_against_the_assigned_partitions(
    world: KafkaWorld, open_container: OpenContainer
) -> None:
    """A topic's word stands for every partition that the topic has."""
    one, two = world.topic(2), world.topic(1)
    container = open_container(
        QueryKind.STREAM,
        subscribe=f"{one},{two}",
        startingOffsets=json.dumps({one: "earliest", two: {"0": 23}}),
    )
    limit = container.options().starting_offsets
    assert container.offset_reader().unresolved(limit, "start") == {
        TopicPartition(one, 0): -2,
        TopicPartition(one, 1): -2,
        TopicPartition(two, 0): 23,
    }


@peer(
    SUITE, "resolving fully enumerated offsets doesn't need the assigned partitions", Held.LIBRARY
)
def test_resolving_fully_enumerated_offsets_does_not_need_the_assigned_partitions() -> None:
    """Where every partition has its offset, a start behind its end is found without a broker."""
    with pytest.raises(OptionsError) as refused:
        parse_source_options(
            {
                "kafka.bootstrap.servers": "nowhere:1",
                "subscribe": "t",
                "startingOffsets": '{"t":{"0":5}}',
                "endingOffsets": '{"t":{"0":1}}',
            },
            QueryKind.BATCH,
        )
    assert refused.value.problems == (
        "The specified start offset 5 is greater than the end offset 1 for topic t partition 0.",
    )


@peer(
    SUITE,
    "resolving a topic-level offset of a topic without assigned partitions fails",
    Held.LIBRARY,
)
def test_resolving_a_topic_level_offset_of_a_topic_without_assigned_partitions_fails(
    world: KafkaWorld, open_container: OpenContainer
) -> None:
    """A word for a topic that is not read ends the query, and names the topic."""
    topic = world.topic(1)
    container = open_container(
        QueryKind.STREAM,
        subscribe=topic,
        startingOffsets=json.dumps({topic: "earliest", "another": "latest"}),
    )
    with pytest.raises(TopicOffsetsMismatchError) as refused:
        container.micro_batch_stream().initial_offset()
    assert refused.value.condition == "KAFKA_TOPIC_OFFSET_DOES_NOT_MATCH_ASSIGNED"
    assert "another" in str(refused.value)
    assert f"Set({topic}-0)" in str(refused.value)
