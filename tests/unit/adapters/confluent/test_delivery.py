"""Errors of records that were not delivered, and of topics that cannot be looked up."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from pyspark_kafka.adapters.confluent.cluster_errors import ClusterErrors
from pyspark_kafka.adapters.confluent.cluster_settings import ClusterSettings
from pyspark_kafka.adapters.confluent.delivery_errors import (
    WITHOUT_OFFSET,
    Undelivered,
    delivery_error,
    produce_error,
    to_report,
)
from pyspark_kafka.adapters.confluent.error_codes import ANOTHER_INVALID_RECORD, NO_LEADERS
from pyspark_kafka.adapters.confluent.producer_config import producer_client_config
from pyspark_kafka.adapters.confluent.topic_partitions import TopicPartitions
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    KafkaRequestError,
    LeaderUnavailableError,
    UnknownTopicError,
)
from pyspark_kafka.domain.security.errors import AuthorizationError
from pyspark_kafka.domain.writing.errors import (
    InvalidTimestampError,
    RecordDeliveryError,
    RecordTooLargeError,
    RejectedRecordError,
)

from ..options import sink_of

TIMED_OUT = KafkaError._MSG_TIMED_OUT  # librdkafka's own
TRANSPORT = KafkaError._TRANSPORT
FATAL = KafkaError._FATAL


@pytest.fixture
def errors():
    """Return the errors of a cluster that is never reached."""
    return ClusterErrors(ClusterSettings(sink_of("confluent"), producer_client_config))


def undelivered(code: int, reason: str = "why", partition: int = 3) -> Undelivered:
    return Undelivered("t", partition, 42, code, reason)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (TIMED_OUT, RecordDeliveryError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, AuthorizationError),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, AuthorizationError),
        (KafkaError.MSG_SIZE_TOO_LARGE, RecordTooLargeError),
        (KafkaError.INVALID_TIMESTAMP, InvalidTimestampError),
        (KafkaError.INVALID_RECORD, RejectedRecordError),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, UnknownTopicError),
        (KafkaError._UNKNOWN_TOPIC, UnknownTopicError),
    ],
)
def test_each_failure_has_an_error(errors, code, kind):
    assert type(delivery_error(errors, undelivered(code))) is kind


@pytest.mark.parametrize("code", [KafkaError._UNKNOWN_PARTITION, KafkaError._DESTROY])
def test_a_partition_that_has_gone(errors, code):
    error = delivery_error(errors, undelivered(code))
    assert "why: the topic was deleted, and maybe recreated. Check" in str(error)


def test_a_record_without_an_offset_may_be_missing_or_written(errors):
    """A slow replica is as likely a cause as a recreated topic."""
    text = str(delivery_error(errors, undelivered(0, WITHOUT_OFFSET)))
    assert "without an offset, so it may be missing or in Kafka already. " in text
    assert "deleted and recreated, or an earlier attempt reached a new leader too early" in text
    assert "or its replicas were too slow" in text
    assert "a retried task writes" in text


@pytest.mark.parametrize(
    "code", [NO_LEADERS, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.LISTENER_NOT_FOUND]
)
def test_a_leader_that_is_not_available_is_no_missing_right(errors, code):
    error = errors.error("a request for offsets", KafkaError(code))
    assert type(error) is LeaderUnavailableError
    assert "a request for offsets: " in str(error)


def test_a_record_that_was_rejected_itself_is_reported():
    another, rejected = (
        undelivered(code) for code in (ANOTHER_INVALID_RECORD, KafkaError.INVALID_RECORD)
    )
    assert to_report(to_report(None, another), rejected) is rejected
    assert to_report(rejected, another) is rejected


def test_a_failure_names_the_record(errors):
    error = delivery_error(errors, undelivered(TIMED_OUT))
    assert isinstance(error, RecordDeliveryError)
    assert (error.topic, error.partition, error.size) == ("t", 3, 42)
    other = delivery_error(errors, undelivered(TIMED_OUT, partition=-1))
    assert isinstance(other, RecordDeliveryError)
    assert other.partition is None


def test_why_a_record_waited_is_said(errors):
    errors.remember_error(KafkaError(TRANSPORT, "refused"))
    assert r"why (refused)" in str(delivery_error(errors, undelivered(TIMED_OUT)))


def test_a_producer_that_can_go_no_further_says_why(errors):
    error = produce_error(errors, undelivered(FATAL, "an epoch too old"))
    assert isinstance(error, KafkaRequestError)
    assert "an epoch too old" in str(error)


class Cluster:
    """Answers of a cluster, one after the other."""

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers)

    def partitions(self, _topic: str, _timeout_s: float) -> int:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer <= 0 or answer == KafkaError.LEADER_NOT_AVAILABLE:
            raise KafkaException(KafkaError(answer or KafkaError.UNKNOWN_TOPIC_OR_PART))
        return answer

    def wait(self, _seconds: float) -> None: ...


def test_a_number_of_partitions_is_kept(errors):
    topics = TopicPartitions(errors, 1, 1_000)
    cluster = Cluster(1, 2, 3)
    assert [topics.count(cluster, "t") for _ in range(2)] == [1, 1]
    assert topics.count(cluster, "t", refresh=True) == 2
    assert topics.count(cluster, "t") == 2
    always = TopicPartitions(errors, 1, -1)
    assert [always.count(Cluster(1, 2), "t") for _ in range(2)] == [1, 1]
    cluster = Cluster(1, 2)
    assert [always.count(cluster, "u") for _ in range(2)] == [1, 2]


def test_a_topic_that_is_about_to_be_is_waited_for(errors):
    topics = TopicPartitions(errors, 10, 1_000)
    assert topics.count(Cluster(0, KafkaError.LEADER_NOT_AVAILABLE, 6), "t") == 6


def test_a_topic_that_does_not_come_is_unknown(errors):
    with pytest.raises(UnknownTopicError, match="'t'"):
        TopicPartitions(errors, 0.1, 1_000).count(Cluster(0), "t")


def test_what_a_broker_said_overrides_silence(errors):
    """The time for the last answer may be too short."""
    with pytest.raises(UnknownTopicError, match="'t'"):
        TopicPartitions(errors, 0.2, 1_000).count(Cluster(0, TRANSPORT), "t")


def test_what_was_known_stands_while_no_broker_answers(errors):
    topics = TopicPartitions(errors, 0, -1)
    assert topics.count(Cluster(4), "t") == 4
    assert topics.count(Cluster(TRANSPORT), "t") == 4
    errors.remember_error(KafkaError(TRANSPORT, "refused"))
    with pytest.raises(BrokerUnreachableError, match=r"answered at \S+ \(refused\)"):
        topics.count(Cluster(TRANSPORT), "u")
