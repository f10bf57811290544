"""Offsets that a broker sends without having been asked for them."""

from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from kafka import TopicPartition as ClientPartition
from kafka.structs import OffsetAndMetadata, OffsetAndTimestamp

from pyspark_kafka.adapters.kafka_python.offset_fetcher import KafkaPythonOffsetFetcher
from pyspark_kafka.domain.errors import InvalidResponseError
from pyspark_kafka.domain.subscription import Subscribe
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..options import source_of

ASKED, OTHER = ClientPartition("t", 0), ClientPartition("other", 7)
WANTED = TopicPartition("t", 0)


def run(ask: Callable[[], Coroutine[None, None, Any]]) -> Any:
    with pytest.raises(StopIteration) as ended:
        ask().send(None)
    return ended.value.value


async def send(request: Any, node_id: int | None = None) -> Any:
    """Answer a request for metadata, or else for offsets."""
    assert [topic.name for topic in request.topics] == [ASKED.topic]
    fields = {"leader_id": 0} if node_id is None else {"error_code": 0, "offset": 5}
    topics = []
    for each in (ASKED, OTHER):
        partition = SimpleNamespace(partition_index=each.partition, **fields)
        topic = {"error_code": 0, "is_internal": False, "partitions": [partition]}
        topics.append(SimpleNamespace(name=each.topic, **topic))
    return SimpleNamespace(topics=topics)


def _fetcher(group_id: str = "g") -> KafkaPythonOffsetFetcher:
    """Return a fetcher whose broker answers with another topic, partition and group as well."""
    timeout = {"kafka.default.api.timeout.ms": "150"}
    fetcher = KafkaPythonOffsetFetcher(source_of("kafka-python", timeout))
    admin = Mock(_manager=SimpleNamespace(run=run, send=send))
    listed = OffsetAndTimestamp(5, -1, None)
    admin.list_partition_offsets.return_value = dict.fromkeys((ASKED, OTHER), listed)
    committed = dict.fromkeys((ASKED, OTHER), OffsetAndMetadata(3, "", -1))
    admin.list_group_offsets.return_value = {group_id: committed}
    fetcher._admin._client = admin
    return fetcher


def test_answers_about_others_are_ignored():
    fetcher = _fetcher()
    assert fetcher.partitions(Subscribe(("t",))) == {WANTED}
    fetcher._leaders.clear()
    for _ in range(2):
        assert fetcher.latest([WANTED]) == {WANTED: 5}
    assert fetcher.committed("g", [WANTED]) == {WANTED: 3}


def test_an_answer_about_another_group_is_none():
    with pytest.raises(InvalidResponseError, match=r"committed offsets .* leaves out t-0"):
        _fetcher("h").committed("g", [WANTED])
