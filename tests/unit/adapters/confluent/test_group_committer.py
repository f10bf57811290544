"""Offsets are committed for a group by a consumer, which an error replaces."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from pyspark_kafka.adapters.confluent import group_committer, offset_fetcher
from pyspark_kafka.adapters.confluent.cluster import Cluster
from pyspark_kafka.adapters.confluent.offset_fetcher import ConfluentOffsetFetcher
from pyspark_kafka.domain.errors import BrokerUnreachableError, KafkaRequestError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.security.errors import AuthorizationError
from pyspark_kafka.domain.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Answer = Callable[["FakeConsumer"], Any]

OFFSETS = PartitionOffsets({TopicPartition("t", 0): 7})
TIMEOUT_MS = 200


class FakeConsumer:
    """A consumer whose commits get the given answers, one after another."""

    answers: ClassVar[list[Answer]] = []
    made: ClassVar[list[FakeConsumer]] = []

    def __init__(self, config: Mapping[str, Any], **_: object) -> None:
        self.config = config
        self.is_closed = False
        self._waiting: list[Answer] = []
        self.made.append(self)

    def commit(self, *, offsets: list[ClientPartition], asynchronous: bool) -> None:
        assert [(each.topic, each.partition, each.offset) for each in offsets] == [("t", 0, 7)]
        assert asynchronous
        self._waiting.append(self.answers.pop(0))

    def poll(self, _seconds: float) -> Any:
        return self._waiting.pop()(self) if self._waiting else None

    def close(self) -> None:
        self.is_closed = True


class Event:
    """An error that is no answer."""

    def __init__(self, code: int) -> None:
        self._error = KafkaError(code)

    def error(self) -> KafkaError:
        return self._error


class RefusedPartition:
    def __init__(self, code: int) -> None:
        self.error = KafkaError(code)


def committed(consumer: FakeConsumer) -> None:
    consumer.config["on_commit"](None, [ClientPartition("t", 0, 7)])


def failed(code: int) -> Answer:
    return lambda consumer: consumer.config["on_commit"](KafkaError(code), [])


def failed_late(code: int) -> Answer:
    def answer(consumer: FakeConsumer) -> None:
        time.sleep(TIMEOUT_MS / 1_000)
        failed(code)(consumer)

    return answer


def refused(code: int) -> Answer:
    return lambda consumer: consumer.config["on_commit"](None, [RefusedPartition(code)])


@pytest.fixture
def fetcher(monkeypatch):
    monkeypatch.setattr(group_committer, "Consumer", FakeConsumer)
    monkeypatch.setattr(offset_fetcher, "RETRY_S", 0.0)
    monkeypatch.setattr(FakeConsumer, "answers", [])
    monkeypatch.setattr(FakeConsumer, "made", [])
    options = {
        "client": "confluent",
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "subscribe": "t",
        "kafka.default.api.timeout.ms": str(TIMEOUT_MS),
    }
    return ConfluentOffsetFetcher(parse_source_options(options, QueryKind.STREAM))


def test_commits_of_a_group_share_a_consumer(fetcher):
    FakeConsumer.answers += [committed] * 3
    for group in ("a", "a", "b"):
        fetcher.commit(group, OFFSETS)
    assert [each.config["group.id"] for each in FakeConsumer.made] == ["a", "b"]
    assert [each.is_closed for each in FakeConsumer.made] == [True, False]
    fetcher.close()
    assert FakeConsumer.made[1].is_closed


def test_a_commit_without_a_coordinator_is_repeated_by_the_same_consumer(fetcher):
    FakeConsumer.answers += [failed(KafkaError._WAIT_COORD)] * 2 + [committed]
    fetcher.commit("a", OFFSETS)
    [consumer] = FakeConsumer.made
    assert not consumer.is_closed
    assert consumer.config["session.timeout.ms"] == "1000"


def test_a_new_consumer_looks_for_another_coordinator(fetcher):
    """A broker that is not the coordinator any more is asked once."""
    FakeConsumer.answers += [refused(KafkaError.NOT_COORDINATOR), committed]
    fetcher.commit("a", OFFSETS)
    assert [each.is_closed for each in FakeConsumer.made] == [True, False]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"default.api.timeout.ms": "9000"}, "3000"),
        ({"default.api.timeout.ms": "9000", "request.timeout.ms": "2000"}, "2000"),
        ({"default.api.timeout.ms": "900000"}, "60000"),
        ({"default.api.timeout.ms": "900"}, "1000"),
        ({"default.api.timeout.ms": "9000", "socket.timeout.ms": "soon"}, "3000"),
    ],
)
def test_all_attempts_take_as_long_as_a_call(monkeypatch, given, expected):
    options = {
        "client": "confluent",
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "subscribe": "t",
        **{f"kafka.{name}": value for name, value in given.items()},
    }
    made = []

    def make(config: dict[str, Any], **others: Any) -> Any:
        made.append(config)
        return Consumer(config, **others)

    monkeypatch.setattr(group_committer, "Consumer", make)
    cluster = Cluster(parse_source_options(options, QueryKind.STREAM))
    group_committer.GroupCommitter(cluster, "a").close()
    assert made[0]["socket.timeout.ms"] == expected


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda _: None, BrokerUnreachableError),
        (failed_late(KafkaError._WAIT_COORD), BrokerUnreachableError),
        (refused(KafkaError.UNKNOWN_MEMBER_ID), KafkaRequestError),
        (lambda _: Event(KafkaError.GROUP_AUTHORIZATION_FAILED), AuthorizationError),
        (refused(KafkaError.TOPIC_AUTHORIZATION_FAILED), AuthorizationError),
    ],
    ids=["none", "no coordinator", "active group", "group refused", "topic refused"],
)
def test_a_failed_commit_is_an_error(fetcher, answer, error):
    FakeConsumer.answers.append(answer)
    with pytest.raises(error):
        fetcher.commit("a", OFFSETS)
    assert [each.is_closed for each in FakeConsumer.made] == [True]
