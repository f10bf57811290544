from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from confluent_kafka import KafkaError, KafkaException

from pyspark_kafka.adapters.confluent import admin as admin_sessions
from pyspark_kafka.adapters.confluent import cluster_describer, offset_fetcher
from pyspark_kafka.adapters.confluent.cluster_describer import ConfluentClusterDescriber
from pyspark_kafka.adapters.confluent.error_codes import NO_LEADERS
from pyspark_kafka.adapters.confluent.offset_fetcher import MAX_ASKED, ConfluentOffsetFetcher
from pyspark_kafka.domain.errors import InvalidResponseError, PysparkKafkaError
from pyspark_kafka.domain.subscription import Assign, SubscribePattern
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports import clock as ports_clock

from ..options import source_of

API_TIMEOUT_S = 3.0
OPTIONS = source_of("confluent", {"kafka.default.api.timeout.ms": "3000"})
FIRST = TopicPartition("t", 0)


def answered(result: object) -> Future[Any]:
    """Return an answer: a result, or an error of this code."""
    answer: Future[Any] = Future()
    if isinstance(result, int):
        answer.set_exception(KafkaException(KafkaError(result)))
    else:
        answer.set_result(result)
    return answer


@pytest.fixture
def client(monkeypatch):
    """Return what is an admin client, and a consumer, of all adapters."""
    made = MagicMock()
    monkeypatch.setattr(admin_sessions, "OffsetsAdmin", lambda *_, **__: made)
    monkeypatch.setattr(offset_fetcher, "Consumer", lambda *_, **__: made)
    made.poll.return_value = None
    return made


def offsets_of_t(partitions: list[Any], *_: object) -> Future[Any]:
    known = [each for each in partitions if each.topic == "t"]
    if not known:
        return answered(NO_LEADERS)
    unknown = dict.fromkeys(partitions, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    return answered({**unknown, **dict.fromkeys(known, SimpleNamespace(offset=7))})


@pytest.mark.parametrize("known", [MAX_ASKED, MAX_ASKED + 3])
def test_many_partitions_take_several_requests(client, known):
    client.request_offsets.side_effect = offsets_of_t
    client.describe_topics.return_value = {"u": answered(KafkaError.UNKNOWN_TOPIC_OR_PART)}
    existing = [TopicPartition("t", number) for number in range(known)]
    deleted = [TopicPartition("u", number) for number in range(2 * MAX_ASKED)]
    found = ConfluentOffsetFetcher(OPTIONS).latest([*existing, *deleted])
    assert found == dict.fromkeys(existing, 7)
    sizes = [len(call.args[0]) for call in client.request_offsets.call_args_list]
    assert (max(sizes), sum(sizes)) == (MAX_ASKED, known + 2 * MAX_ASKED)


def test_a_response_that_leaves_out_a_partition_is_invalid(client):
    """A partition without an answer would be taken for one that does not exist."""
    client.request_offsets.side_effect = lambda partitions, *_: offsets_of_t(partitions[1:])
    with pytest.raises(InvalidResponseError, match="leaves out"):
        ConfluentOffsetFetcher(OPTIONS).latest([FIRST, TopicPartition("t", 1)])


def test_a_request_that_hangs_leaves_time_for_another(client, monkeypatch):
    monkeypatch.setattr(offset_fetcher, "RETRY_S", 0.0)
    client.describe_topics.side_effect = [KafkaException(KafkaError(KafkaError._TIMED_OUT)), {}]
    assert ConfluentOffsetFetcher(OPTIONS).partitions(Assign(frozenset({FIRST}))) == frozenset()
    calls = client.describe_topics.call_args_list
    assert [call.kwargs["request_timeout"] for call in calls] == [API_TIMEOUT_S / 3] * 2


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that advances when something waits."""
    made: Any = SimpleNamespace(now=100.0)
    made.monotonic = lambda: made.now
    made.sleep = lambda seconds: setattr(made, "now", made.now + seconds)
    for module in (ports_clock, offset_fetcher, cluster_describer):
        monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def slow_client(client, clock):
    """Return a client whose first answer comes late, and whose later ones do not come."""
    client.asked = 0

    def fail(code: int, timeout_s: float) -> Future[Any]:
        client.asked += 1
        clock.sleep(0.9 * API_TIMEOUT_S if client.asked == 1 else timeout_s)
        return answered(code)

    def committed(_partitions: object, timeout: float) -> None:
        is_first = not client.asked
        code = KafkaError.COORDINATOR_NOT_AVAILABLE if is_first else KafkaError._TIMED_OUT
        fail(code, timeout).result()

    def topics(*_: object, timeout: float) -> Any:
        fail(0, timeout)
        return SimpleNamespace(topics=["t"])

    def described(code: int) -> Any:
        def describe(names: Any, *, request_timeout: float, **_: object) -> dict[str, Any]:
            wanted = getattr(names, "topic_names", names)
            return dict.fromkeys(wanted, fail(code, request_timeout))

        return describe

    client.request_offsets = lambda *given: fail(NO_LEADERS, given[-1])
    client.describe_topics = described(KafkaError._TIMED_OUT)
    client.describe_consumer_groups = described(KafkaError.COORDINATOR_NOT_AVAILABLE)
    client.committed, client.list_topics = committed, topics
    return client


@pytest.mark.parametrize(
    "call",
    [
        lambda: ConfluentOffsetFetcher(OPTIONS).latest([FIRST]),
        lambda: ConfluentOffsetFetcher(OPTIONS).partitions(SubscribePattern("t.*")),
        lambda: ConfluentOffsetFetcher(OPTIONS).committed("g", [FIRST]),
        lambda: ConfluentClusterDescriber(OPTIONS).group_operations("g"),
    ],
    ids=["latest", "pattern", "committed", "group operations"],
)
def test_the_requests_of_a_call_have_one_deadline(clock, slow_client, call):
    """Time that one uses is lost to the others: a call takes as long as the port says."""
    begun = clock.now
    with pytest.raises(PysparkKafkaError):
        call()
    assert slow_client.asked > 1
    assert clock.now - begun <= API_TIMEOUT_S + 2 * admin_sessions.RETRY_S
