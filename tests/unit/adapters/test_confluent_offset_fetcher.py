from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from pyspark_kafka.adapters.confluent import offset_fetcher
from pyspark_kafka.adapters.confluent.offset_fetcher import ConfluentOffsetFetcher
from pyspark_kafka.domain.options import QueryKind, parse_source_options
from pyspark_kafka.domain.subscription import Assign
from pyspark_kafka.domain.topic_partition import TopicPartition

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


def test_a_request_that_hangs_leaves_time_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new client asks again when a third of the time is up, however short the time is."""
    timeouts: list[float] = []
    monkeypatch.setattr(offset_fetcher, "AdminClient", lambda _config, **_: StuckAdmin(timeouts))
    monkeypatch.setattr(offset_fetcher, "RETRY_S", 0.0)
    options = parse_source_options(
        {
            "client": "confluent",
            "kafka.bootstrap.servers": "127.0.0.1:1",
            "subscribe": "t",
            "kafka.default.api.timeout.ms": str(round(API_TIMEOUT_S * 1_000)),
        },
        QueryKind.BATCH,
    )
    fetcher = ConfluentOffsetFetcher(options)
    assert fetcher.partitions(Assign(frozenset({TopicPartition("t", 0)}))) == frozenset()
    assert timeouts == [API_TIMEOUT_S / 3] * 2
