from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from pyspark_kafka.adapters.confluent import offset_fetcher
from pyspark_kafka.adapters.confluent.error_codes import NO_LEADERS
from pyspark_kafka.adapters.confluent.offset_fetcher import MAX_ASKED, ConfluentOffsetFetcher
from pyspark_kafka.domain.errors import InvalidResponseError
from pyspark_kafka.domain.options import QueryKind, parse_source_options
from pyspark_kafka.domain.subscription import Assign
from pyspark_kafka.domain.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def fetcher_of_t() -> ConfluentOffsetFetcher:
    options = parse_source_options(
        {
            "client": "confluent",
            "kafka.bootstrap.servers": "127.0.0.1:1",
            "subscribe": "t",
            "kafka.default.api.timeout.ms": str(round(API_TIMEOUT_S * 1_000)),
        },
        QueryKind.BATCH,
    )
    return ConfluentOffsetFetcher(options)


@pytest.mark.parametrize("known", [MAX_ASKED, MAX_ASKED + 3])
def test_many_partitions_take_several_requests(monkeypatch: pytest.MonkeyPatch, known: int) -> None:
    """Partitions that do not exist are left out, also if a request names no others."""
    admin = BoundedAdmin(offset=7)
    monkeypatch.setattr(offset_fetcher, "OffsetsAdmin", lambda _config, **_: admin)
    existing = [TopicPartition("t", number) for number in range(known)]
    deleted = [TopicPartition("u", number) for number in range(2 * MAX_ASKED)]
    assert fetcher_of_t().latest([*existing, *deleted]) == dict.fromkeys(existing, 7)
    assert max(admin.sizes) == MAX_ASKED
    assert sum(admin.sizes) == known + 2 * MAX_ASKED


def test_a_response_that_leaves_out_a_partition_is_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition without an answer would be taken for one that does not exist."""
    admin = BoundedAdmin(offset=7)
    answer = admin.request_offsets
    monkeypatch.setattr(
        admin, "request_offsets", lambda partitions, *more: answer(partitions[1:], *more)
    )
    monkeypatch.setattr(offset_fetcher, "OffsetsAdmin", lambda _config, **_: admin)
    with pytest.raises(InvalidResponseError, match="leaves out"):
        fetcher_of_t().latest([TopicPartition("t", number) for number in range(2)])


def test_a_request_that_hangs_leaves_time_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new client asks again when a third of the time is up, however short the time is."""
    timeouts: list[float] = []
    monkeypatch.setattr(offset_fetcher, "OffsetsAdmin", lambda _config, **_: StuckAdmin(timeouts))
    monkeypatch.setattr(offset_fetcher, "RETRY_S", 0.0)
    assert fetcher_of_t().partitions(Assign(frozenset({TopicPartition("t", 0)}))) == frozenset()
    assert timeouts == [API_TIMEOUT_S / 3] * 2
