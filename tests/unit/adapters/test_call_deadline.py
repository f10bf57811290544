"""One deadline for all that a call waits for."""

import itertools
import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import pytest

from pyspark_kafka.adapters import call_deadline
from pyspark_kafka.adapters.call_deadline import MAX_ATTEMPT_S, Attempts, within
from pyspark_kafka.adapters.confluent.offset_fetcher import ConfluentOffsetFetcher
from pyspark_kafka.adapters.fetching import Watermarks
from pyspark_kafka.adapters.kafka_python.failures import ErrorMapper
from pyspark_kafka.adapters.kafka_python.offset_fetcher import KafkaPythonOffsetFetcher
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    KafkaRequestError,
    LeaderUnavailableError,
)
from pyspark_kafka.domain.security.errors import TlsError, TlsFailure
from pyspark_kafka.domain.topic_partition import TopicPartition

from .options import source_of

PARTITION: Final = TopicPartition("t", 0)
OPTIONS: Final = source_of("confluent")
API_TIMEOUT_S: Final = 30


def test_a_call_within_a_call_ends_with_it():
    with within(100) as outer:
        with within(1_000) as later:
            assert later == outer
        with within(10) as earlier:
            assert earlier < outer
            with within(50) as inner:
                assert inner == earlier
        with within(math.inf) as again:
            assert again == outer


def test_calls_of_two_threads_have_deadlines_of_their_own():
    """Offsets may be asked for by several threads at once: neither ends with the other."""
    left: list[float] = []

    def call() -> None:
        with within(1_000) as deadline:
            left.append(deadline.remaining)

    with within(1):
        other = threading.Thread(target=call)
        other.start()
        other.join()
    assert left[0] > 500


def test_a_call_that_failed_leaves_no_deadline():
    with suppress(ValueError), within(1):
        raise ValueError
    with within(100) as deadline:
        assert deadline.remaining > 50


def test_a_call_has_the_time_out_of_its_cluster_or_less():
    errors = ErrorMapper("broker:9092", 60_000)
    for seconds in (None, 1_000):
        with errors.one_deadline(seconds) as deadline:
            assert 50 < deadline.remaining <= 60
    with errors.one_deadline(10) as deadline:
        assert deadline.remaining <= 10


def test_an_attempt_that_ran_out_of_time_is_followed_by_a_longer_one(monkeypatch):
    monkeypatch.setattr(call_deadline, "MIN_ATTEMPT_S", 0.0)
    errors, attempts = ErrorMapper("broker:9092", 60_000), Attempts()
    for _ in range(9):
        with suppress(ValueError), attempts.next(errors.one_deadline, "slow"):
            raise ValueError
    monkeypatch.setattr(call_deadline, "MIN_ATTEMPT_S", 1.0)
    left: list[float] = []
    for key in ("slow", "slow", "other"):
        with attempts.next(errors.one_deadline, key), errors.one_deadline() as deadline:
            left.append(deadline.remaining)
    assert MAX_ATTEMPT_S / 2 < left[0] <= MAX_ATTEMPT_S
    assert max(left[1:]) <= 1.0


@pytest.fixture(params=[ConfluentOffsetFetcher, KafkaPythonOffsetFetcher])
def watermarks(request):
    """Return the watermarks of each client."""
    return Watermarks(lambda: request.param(OPTIONS), OPTIONS)


def answered(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[], int], deadlines: list[float]
) -> None:
    """Let each client answer so, and note the deadlines of its requests."""

    def query(fetcher: Any, wanted: Mapping[TopicPartition, object]) -> dict[TopicPartition, int]:
        is_confluent = isinstance(fetcher, ConfluentOffsetFetcher)
        calls = fetcher._cluster.settings if is_confluent else fetcher._errors
        with calls.one_deadline() as deadline:
            deadlines.append(deadline.at)
        return dict.fromkeys(wanted, answer())

    for client in (ConfluentOffsetFetcher, KafkaPythonOffsetFetcher):
        monkeypatch.setattr(client, "_query", query)


def test_both_requests_for_watermarks_have_one_deadline(monkeypatch, watermarks):
    deadlines: list[float] = []
    answered(monkeypatch, lambda: 7, deadlines)
    began = time.monotonic()
    assert watermarks.of(PARTITION) == (7, 7)
    assert len(deadlines) == 2
    assert len({*deadlines}) == 1
    assert 0 <= deadlines[0] - began - API_TIMEOUT_S < API_TIMEOUT_S / 2
    with within(5) as outer:
        watermarks.of(PARTITION)
    assert deadlines[2:] == [outer.at] * 2


def test_a_log_that_ends_before_it_begins_is_asked_for_again(monkeypatch, watermarks):
    """A leader that was cut off from the cluster answers one of the two requests."""
    answers = iter([7, 0, 7, 9])
    answered(monkeypatch, lambda: next(answers), [])
    assert watermarks.of(PARTITION) == (7, 9)
    answered(monkeypatch, itertools.cycle([7, 0]).__next__, [])
    with within(0.3), pytest.raises(LeaderUnavailableError, match=r"begins at 7 .* ends at 0"):
        watermarks.of(PARTITION)


@pytest.mark.parametrize(
    "passing", [BrokerUnreachableError("b:1", 30), KafkaRequestError("a", "b")]
)
def test_a_task_asks_for_watermarks_in_short_attempts(monkeypatch, watermarks, passing):
    """An error is raised if they fail for as long as a call may take, and not after a success."""
    deadlines: list[float] = []
    raised: list[Exception] = []

    def answer() -> int:
        if raised:
            raise raised[0]
        return 7

    answered(monkeypatch, answer, deadlines)
    monkeypatch.setattr(call_deadline, "MIN_ATTEMPT_S", 5.0)
    raised.append(passing)
    assert watermarks.attempt(PARTITION) is None
    assert deadlines[0] <= time.monotonic() + 5.0
    raised.clear()
    assert watermarks.attempt(PARTITION) == (7, 7)
    raised.append(passing)
    assert watermarks.attempt(PARTITION) is None
    since, last = watermarks._failing[PARTITION]
    watermarks._failing[PARTITION] = since - API_TIMEOUT_S, last
    with pytest.raises(type(passing)):
        watermarks.attempt(PARTITION)


def test_a_failure_of_long_ago_is_no_failure_until_now(monkeypatch, watermarks):
    """A partition that was fetched since then, or revoked, has all of the time again."""

    def answer() -> int:
        raise BrokerUnreachableError("b:1", 30)

    answered(monkeypatch, answer, [])
    assert watermarks.attempt(PARTITION) is None
    since, last = watermarks._failing[PARTITION]
    long_ago = 2 * API_TIMEOUT_S
    watermarks._failing[PARTITION] = since - long_ago, last - long_ago
    assert watermarks.attempt(PARTITION) is None


def test_ends_of_many_partitions_are_asked_for_in_one_attempt(monkeypatch, watermarks):
    asked: list[float] = []
    answered(monkeypatch, lambda: 7, asked)
    wanted = {PARTITION, TopicPartition("other", 3)}
    assert watermarks.attempt_latest(wanted) == dict.fromkeys(wanted, 7)
    assert len(asked) == 1


def test_what_does_not_pass_is_raised_by_the_first_attempt(monkeypatch, watermarks):
    """A partition that does not exist may be created again."""

    def refuse() -> int:
        raise TlsError("b:1", TlsFailure.NOT_TLS, "no TLS")

    answered(monkeypatch, refuse, [])
    with pytest.raises(TlsError):
        watermarks.attempt(PARTITION)
    monkeypatch.setattr(ConfluentOffsetFetcher, "_query", lambda *_: {})
    monkeypatch.setattr(KafkaPythonOffsetFetcher, "_query", lambda *_: {})
    assert watermarks.attempt(PARTITION) is None
