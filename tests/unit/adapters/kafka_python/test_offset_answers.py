"""Offsets that a broker sends without having been asked for them."""

from collections.abc import Callable, Coroutine, Mapping
from types import SimpleNamespace
from typing import Any, final

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


@final
class TalkativeManager:
    """Answers with another topic and partition as well."""

    def run(self, ask: Callable[[], Coroutine[None, None, Any]]) -> Any:
        with pytest.raises(StopIteration) as ended:
            ask().send(None)
        return ended.value.value

    async def send(self, request: Any, node_id: int | None = None) -> Any:
        answer = self._metadata if node_id is None else self._offsets
        assert [topic.name for topic in request.topics] == [ASKED.topic]
        return SimpleNamespace(topics=[answer(each) for each in (ASKED, OTHER)])

    @staticmethod
    def _metadata(partition: ClientPartition) -> Any:
        partitions = [SimpleNamespace(partition_index=partition.partition, leader_id=0)]
        return SimpleNamespace(
            name=partition.topic, error_code=0, is_internal=False, partitions=partitions
        )

    @staticmethod
    def _offsets(partition: ClientPartition) -> Any:
        found = {"partition_index": partition.partition, "error_code": 0, "offset": 5}
        return SimpleNamespace(name=partition.topic, partitions=[SimpleNamespace(**found)])


@final
class TalkativeAdmin:
    """Answers with another topic, partition and group as well."""

    _manager = TalkativeManager()

    def __init__(self, group_id: str = "g") -> None:
        self._group_id = group_id

    def list_partition_offsets(self, *_: object, **__: object) -> Mapping[ClientPartition, Any]:
        return {each: OffsetAndTimestamp(5, -1, None) for each in (ASKED, OTHER)}

    def list_group_offsets(self, _: object) -> Mapping[str, Mapping[ClientPartition, Any]]:
        return {self._group_id: {each: OffsetAndMetadata(3, "", -1) for each in (ASKED, OTHER)}}

    def close(self) -> None:
        """Do nothing."""


def _fetcher(admin: TalkativeAdmin) -> KafkaPythonOffsetFetcher:
    timeout = {"kafka.default.api.timeout.ms": "150"}
    fetcher = KafkaPythonOffsetFetcher(source_of("kafka-python", timeout))
    fetcher._admin._client = admin
    return fetcher


def test_answers_about_others_are_ignored():
    fetcher = _fetcher(TalkativeAdmin())
    assert fetcher.partitions(Subscribe(("t",))) == {WANTED}
    fetcher._leaders.clear()
    for _ in range(2):
        assert fetcher.latest([WANTED]) == {WANTED: 5}
    assert fetcher.committed("g", [WANTED]) == {WANTED: 3}


def test_an_answer_about_another_group_is_none():
    with pytest.raises(InvalidResponseError, match=r"committed offsets .* leaves out t-0"):
        _fetcher(TalkativeAdmin("h")).committed("g", [WANTED])
