"""Offsets that a broker sends without having been asked for them."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from typing import Any

import pytest

from pyspark_kafka.adapters.kafka_python.offset_fetcher import KafkaPythonOffsetFetcher
from pyspark_kafka.domain.errors import InvalidResponseError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.subscription import Subscribe
from pyspark_kafka.domain.topic_partition import TopicPartition
from tests.servers.hostile_broker import Lie, hostile_broker

from ..options import source_of

WANTED = TopicPartition("t", 0)


def _and_another(_request: Any, response: Any) -> None:
    """Answer about another topic, too."""
    other = deepcopy(response.topics[0])
    other.name = "other"
    response.topics.append(other)


def _about_another(_request: Any, response: Any) -> None:
    response.topics[0].name = "other"


@contextmanager
def _fetcher(answer: Callable[[Any, Any], None], *apis: str) -> Iterator[KafkaPythonOffsetFetcher]:
    with hostile_broker(*(Lie(api, answer=answer) for api in apis)) as broker:
        broker.cluster.append(WANTED, [b"x"] * 5, 5)
        options = {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "kafka.default.api.timeout.ms": "2000",
        }
        with closing(KafkaPythonOffsetFetcher(source_of("kafka-python", options))) as fetcher:
            yield fetcher


def test_answers_about_others_are_ignored():
    with _fetcher(_and_another, "Metadata", "ListOffsets", "OffsetFetch") as fetcher:
        assert WANTED in fetcher.partitions(Subscribe(("t",)))
        fetcher._metadata.forget_leaders()
        for _ in range(2):
            assert fetcher.latest([WANTED]) == {WANTED: 5}
        fetcher.commit("g", PartitionOffsets({WANTED: 3}))
        assert fetcher.committed("g", [WANTED]) == {WANTED: 3}


def test_an_answer_that_leaves_out_a_partition_is_none():
    with (
        _fetcher(_about_another, "OffsetFetch") as fetcher,
        pytest.raises(InvalidResponseError, match=r"committed offsets .* leaves out t-0"),
    ):
        fetcher.committed("g", [WANTED])
