"""Offsets are committed for a group by a consumer, which an error replaces."""

import logging
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest
from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from pyspark_kafka.adapters.confluent import group_committer, offset_fetcher
from pyspark_kafka.adapters.confluent.cluster import Cluster
from pyspark_kafka.adapters.confluent.offset_fetcher import ConfluentOffsetFetcher
from pyspark_kafka.domain.errors import BrokerUnreachableError, KafkaRequestError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.security.errors import AuthorizationError
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..options import source_of

OFFSETS = PartitionOffsets({TopicPartition("t", 0): 7})
TIMEOUT_MS = 200

Answer: TypeAlias = Callable[[Callable[..., None]], Any]
"""A poll: it gets a consumer's callback for commits, which it may call."""


def failed(code: int, after_s: float = 0.0) -> Answer:
    def answer(on_commit: Callable[..., None]) -> None:
        time.sleep(after_s)
        on_commit(KafkaError(code), [])

    return answer


def committed(error: KafkaError | None = None) -> Answer:
    partition = SimpleNamespace(error=error)
    return lambda on_commit: on_commit(None, [partition])


class Consumers:
    """Makes consumers whose commits get these answers, one after another."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.made: list[Any] = []

    def __call__(self, config: dict[str, Any], logger: logging.Logger) -> Any:
        waiting: list[Answer] = []

        def commit(*, offsets: list[ClientPartition], asynchronous: bool) -> None:
            assert [(each.topic, each.partition, each.offset) for each in offsets] == [("t", 0, 7)]
            assert asynchronous
            waiting.append(self.answers.pop(0))

        def poll(_seconds: float) -> Any:
            return waiting.pop()(config["on_commit"]) if waiting else None

        made = SimpleNamespace(
            config=config, logger=logger, commit=commit, poll=poll, is_closed=False
        )
        made.close = lambda: setattr(made, "is_closed", True)
        self.made.append(made)
        return made

    @property
    def are_closed(self) -> list[bool]:
        return [each.is_closed for each in self.made]


@pytest.fixture
def consumers(monkeypatch):
    made = Consumers()
    monkeypatch.setattr(group_committer, "Consumer", made)
    monkeypatch.setattr(offset_fetcher, "RETRY_S", 0.0)
    return made


@pytest.fixture
def fetcher(consumers):  # noqa: ARG001  # it commits by them
    timeout = {"kafka.default.api.timeout.ms": str(TIMEOUT_MS)}
    return ConfluentOffsetFetcher(source_of("confluent", timeout))


def test_commits_of_a_group_share_a_consumer(fetcher, consumers):
    consumers.answers += [committed()] * 3
    for group in ("a", "a", "b"):
        fetcher.commit(group, OFFSETS)
    assert [each.config["group.id"] for each in consumers.made] == ["a", "b"]
    assert consumers.are_closed == [True, False]
    fetcher.close()
    assert consumers.are_closed == [True, True]


def test_a_consumer_logs_until_it_is_closed(fetcher, consumers, caplog):
    """It may be closed in the background, long after the broker is gone."""
    consumers.answers.append(committed())
    fetcher.commit("a", OFFSETS)
    consumers.made[0].logger.error("before")
    fetcher.close()
    consumers.made[0].logger.error("after")
    assert caplog.messages == ["before"]
    assert caplog.records[0].name == "pyspark_kafka.librdkafka"


def test_a_commit_without_a_coordinator_is_repeated_by_the_same_consumer(fetcher, consumers):
    consumers.answers += [failed(KafkaError._WAIT_COORD)] * 2 + [committed()]
    fetcher.commit("a", OFFSETS)
    assert consumers.are_closed == [False]
    assert consumers.made[0].config["session.timeout.ms"] == "1000"


def test_a_new_consumer_looks_for_another_coordinator(fetcher, consumers):
    """A broker that is no longer the coordinator is asked once."""
    consumers.answers += [committed(KafkaError(KafkaError.NOT_COORDINATOR)), committed()]
    fetcher.commit("a", OFFSETS)
    assert consumers.are_closed == [True, False]


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
    options = source_of("confluent", {f"kafka.{name}": value for name, value in given.items()})
    made = []

    def make(config: dict[str, Any], **others: Any) -> Any:
        made.append(config)
        return Consumer(config, **others)

    monkeypatch.setattr(group_committer, "Consumer", make)
    group_committer.GroupCommitter(Cluster(options), "a").close()
    assert made[0]["socket.timeout.ms"] == expected


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda _: None, BrokerUnreachableError),
        (failed(KafkaError._WAIT_COORD, TIMEOUT_MS / 1_000), BrokerUnreachableError),
        (committed(KafkaError(KafkaError.UNKNOWN_MEMBER_ID)), KafkaRequestError),
        (
            lambda _: SimpleNamespace(
                error=lambda: KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
            ),
            AuthorizationError,
        ),
        (committed(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)), AuthorizationError),
    ],
    ids=["none", "no coordinator", "active group", "group refused", "topic refused"],
)
def test_a_failed_commit_is_an_error(fetcher, consumers, answer, error):
    consumers.answers.append(answer)
    with pytest.raises(error):
        fetcher.commit("a", OFFSETS)
    assert consumers.are_closed == [True]
