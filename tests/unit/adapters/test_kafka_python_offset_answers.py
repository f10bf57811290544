"""Offsets that a broker sends without having been asked for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, final

import pytest
from kafka import TopicPartition as ClientPartition
from kafka.structs import OffsetAndMetadata, OffsetAndTimestamp

from pyspark_kafka.adapters.kafka_python.offset_fetcher import KafkaPythonOffsetFetcher
from pyspark_kafka.domain.errors import InvalidResponseError
from pyspark_kafka.domain.options import QueryKind, parse_source_options
from pyspark_kafka.domain.subscription import Subscribe
from pyspark_kafka.domain.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

ASKED, OTHER = ClientPartition("t", 0), ClientPartition("other", 7)
WANTED = TopicPartition("t", 0)


@final
class TalkativeAdmin:
    """Answers with another topic, partition and group as well."""

    _manager = SimpleNamespace(
        run=lambda _: [(TopicPartition(*ASKED), 5), (TopicPartition(*OTHER), 6)]
    )

    def __init__(self, group_id: str = "g") -> None:
        self._group_id = group_id

    def describe_topics(self, _: object) -> list[dict[str, Any]]:
        return [
            {
                "name": each.topic,
                "error_code": 0,
                "is_internal": False,
                "partitions": [{"partition_index": each.partition, "leader_id": 0}],
            }
            for each in (ASKED, OTHER)
        ]

    def list_partition_offsets(self, *_: object, **__: object) -> Mapping[ClientPartition, Any]:
        return {each: OffsetAndTimestamp(5, -1, None) for each in (ASKED, OTHER)}

    def list_group_offsets(self, _: object) -> Mapping[str, Mapping[ClientPartition, Any]]:
        return {self._group_id: {each: OffsetAndMetadata(3, "", -1) for each in (ASKED, OTHER)}}

    def close(self) -> None:
        """Do nothing."""


def _fetcher(admin: TalkativeAdmin) -> KafkaPythonOffsetFetcher:
    options = {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "kafka.default.api.timeout.ms": "150",
        "subscribe": "t",
    }
    fetcher = KafkaPythonOffsetFetcher(parse_source_options(options, QueryKind.STREAM))
    fetcher._admin = lambda: admin  # type: ignore[method-assign]
    return fetcher


def test_answers_about_others_are_ignored() -> None:
    """Only what was asked for is returned, on the first way and on the second, shorter one."""
    fetcher = _fetcher(TalkativeAdmin())
    assert fetcher.partitions(Subscribe(("t",))) == {WANTED}
    fetcher._leaders.clear()
    for _ in range(2):
        assert fetcher.latest([WANTED]) == {WANTED: 5}
    assert fetcher.committed("g", [WANTED]) == {WANTED: 3}


def test_an_answer_about_another_group_is_none() -> None:
    """A group whose offset a response leaves out has not lost it."""
    with pytest.raises(InvalidResponseError, match=r"committed offsets .* leaves out t-0"):
        _fetcher(TalkativeAdmin("h")).committed("g", [WANTED])
