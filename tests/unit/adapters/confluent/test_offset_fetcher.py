from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest
from confluent_kafka import KafkaError, KafkaException

from pyspark_kafka.adapters.confluent import admin as admin_sessions
from pyspark_kafka.adapters.confluent import cluster_describer, offset_fetcher
from pyspark_kafka.adapters.confluent.error_codes import NO_LEADERS
from pyspark_kafka.adapters.confluent.offset_fetcher import MAX_ASKED, ConfluentOffsetFetcher
from pyspark_kafka.domain.errors import InvalidResponseError, PysparkKafkaError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.subscription import Assign, SubscribePattern
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports import clock as ports_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_kafka.domain.options.source import SourceOptions

API_TIMEOUT_S = 3.0


class StuckAdmin:
    """An admin client whose first request lasts until its time-out."""

    def __init__(self, timeouts: list[float]) -> None:
        self._timeouts = timeouts

    def describe_topics(self, _topics: object, *, request_timeout: float) -> dict[str, Any]:
        self._timeouts.append(request_timeout)
        if len(self._timeouts) == 1:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return {}

    def poll(self, _timeout: float) -> None:
        """Have no events."""

    def __exit__(self, *_: object) -> None:
        """Close without a client."""


class BoundedAdmin:
    """An admin client of the topic ``t``, and none of its requests names many partitions."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self.sizes: list[int] = []

    def request_offsets(
        self, partitions: Sequence[Any], _isolation_level: object, _timeout: float
    ) -> Future[Any]:
        self.sizes.append(len(partitions))
        known = [each for each in partitions if each.topic == "t"]
        if not known:
            return failed(NO_LEADERS)
        unknown = dict.fromkeys(partitions, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        return done({**unknown, **dict.fromkeys(known, SimpleNamespace(offset=self._offset))})

    def describe_topics(self, wanted: Any, **_: object) -> dict[str, Future[Any]]:
        unknown = failed(KafkaError.UNKNOWN_TOPIC_OR_PART)
        described = SimpleNamespace(is_internal=False, partitions=[SimpleNamespace(id=0)])
        return {topic: done(described) if topic == "t" else unknown for topic in wanted.topic_names}

    def poll(self, _timeout: float) -> None:
        """Have no events."""


def done(result: object) -> Future[Any]:
    answer: Future[Any] = Future()
    answer.set_result(result)
    return answer


def failed(code: int) -> Future[Any]:
    answer: Future[Any] = Future()
    answer.set_exception(KafkaException(KafkaError(code)))
    return answer


def options_of_t() -> SourceOptions:
    return parse_source_options(
        {
            "client": "confluent",
            "kafka.bootstrap.servers": "127.0.0.1:1",
            "subscribe": "t",
            "kafka.default.api.timeout.ms": str(round(API_TIMEOUT_S * 1_000)),
        },
        QueryKind.BATCH,
    )


def fetcher_of_t() -> ConfluentOffsetFetcher:
    return ConfluentOffsetFetcher(options_of_t())


@pytest.mark.parametrize("known", [MAX_ASKED, MAX_ASKED + 3])
def test_many_partitions_take_several_requests(monkeypatch, known):
    admin = BoundedAdmin(offset=7)
    monkeypatch.setattr(admin_sessions, "OffsetsAdmin", lambda _config, **_: admin)
    existing = [TopicPartition("t", number) for number in range(known)]
    deleted = [TopicPartition("u", number) for number in range(2 * MAX_ASKED)]
    assert fetcher_of_t().latest([*existing, *deleted]) == dict.fromkeys(existing, 7)
    assert max(admin.sizes) == MAX_ASKED
    assert sum(admin.sizes) == known + 2 * MAX_ASKED


def test_a_response_that_leaves_out_a_partition_is_invalid(monkeypatch):
    """A partition without an answer would be taken for one that does not exist."""
    admin = BoundedAdmin(offset=7)
    answer = admin.request_offsets
    monkeypatch.setattr(
        admin, "request_offsets", lambda partitions, *more: answer(partitions[1:], *more)
    )
    monkeypatch.setattr(admin_sessions, "OffsetsAdmin", lambda _config, **_: admin)
    with pytest.raises(InvalidResponseError, match="leaves out"):
        fetcher_of_t().latest([TopicPartition("t", number) for number in range(2)])


def test_a_request_that_hangs_leaves_time_for_another(monkeypatch):
    timeouts: list[float] = []
    monkeypatch.setattr(admin_sessions, "OffsetsAdmin", lambda _config, **_: StuckAdmin(timeouts))
    monkeypatch.setattr(offset_fetcher, "RETRY_S", 0.0)
    assert fetcher_of_t().partitions(Assign(frozenset({TopicPartition("t", 0)}))) == frozenset()
    assert timeouts == [API_TIMEOUT_S / 3] * 2


class Clock:
    """Time that passes with what the fakes do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        for module in (ports_clock, offset_fetcher, cluster_describer):
            monkeypatch.setattr(module, "time", self)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def answer(self, code: int, seconds: float) -> Future[Any]:
        """Return an error that takes so long to come."""
        self.sleep(seconds)
        return failed(code)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@dataclass
class SlowClient:
    """Is an admin client and a consumer: first answers come late, and then none."""

    clock: Clock
    asked: int = 0

    def __call__(self, *_: object, **__: object) -> SlowClient:
        return self

    def _ask(self, code: int, timeout_s: float) -> Future[Any]:
        self.asked += 1
        is_first = self.asked == 1
        return self.clock.answer(code, 0.9 * API_TIMEOUT_S if is_first else timeout_s)

    def request_offsets(self, _wanted: object, _isolation: object, timeout: float) -> Future[Any]:
        return self._ask(NO_LEADERS, timeout)

    def describe_topics(self, wanted: Any, *, request_timeout: float, **_: object) -> Any:
        answer = self._ask(KafkaError._TIMED_OUT, request_timeout)
        return dict.fromkeys(wanted.topic_names, answer)

    def list_topics(self, timeout: float) -> Any:
        self._ask(0, timeout)
        return SimpleNamespace(topics=["t"])

    def describe_consumer_groups(self, groups: Any, *, request_timeout: float, **_: object) -> Any:
        coordinator = KafkaError.COORDINATOR_NOT_AVAILABLE
        return dict.fromkeys(groups, self._ask(coordinator, request_timeout))

    def committed(self, _partitions: object, timeout: float) -> Any:
        is_first = not self.asked
        self._ask(0, timeout)
        code = KafkaError.COORDINATOR_NOT_AVAILABLE if is_first else KafkaError._TIMED_OUT
        raise KafkaException(KafkaError(code))

    def poll(self, _timeout: float) -> None:
        """Have no events."""

    def close(self) -> None:
        """Close without a client."""

    def __exit__(self, *_: object) -> None:
        """Close without a client."""


CALLS: Final[dict[str, Callable[[ConfluentOffsetFetcher], object]]] = {
    "latest": lambda fetcher: fetcher.latest([TopicPartition("t", 0)]),
    "pattern": lambda fetcher: fetcher.partitions(SubscribePattern("t.*")),
    "committed": lambda fetcher: fetcher.committed("g", [TopicPartition("t", 0)]),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_requests_of_a_call_have_one_deadline(clock, monkeypatch, call):
    """What one needs is not there for the others: a call takes as long as the port says."""
    client = SlowClient(clock)
    monkeypatch.setattr(admin_sessions, "OffsetsAdmin", client)
    monkeypatch.setattr(offset_fetcher, "Consumer", client)
    begun = clock.now
    with pytest.raises(PysparkKafkaError):
        CALLS[call](fetcher_of_t())
    assert client.asked > 1
    assert clock.now - begun <= API_TIMEOUT_S + 2 * admin_sessions.RETRY_S


def test_the_requests_of_a_description_have_one_deadline(clock, monkeypatch):
    client = SlowClient(clock)
    monkeypatch.setattr(admin_sessions, "OffsetsAdmin", client)
    begun = clock.now
    with pytest.raises(PysparkKafkaError):
        cluster_describer.ConfluentClusterDescriber(options_of_t()).group_operations("g")
    assert client.asked > 1
    assert clock.now - begun <= API_TIMEOUT_S + 2 * admin_sessions.RETRY_S
