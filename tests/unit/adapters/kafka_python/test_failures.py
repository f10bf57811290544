"""kafka-python's errors as the producer's rules class them, and calls that are repeated."""

from unittest.mock import Mock

import pytest
from kafka import errors as kafka_errors

from pyspark_kafka.adapters.kafka_python.failures import ErrorMapper, failure_of, reason_of
from pyspark_kafka.domain.errors import BrokerUnreachableError, LeaderUnavailableError
from pyspark_kafka.domain.writing.batch import Failure, ProduceError


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (kafka_errors.DuplicateSequenceNumberError, ProduceError.DUPLICATE_SEQUENCE),
        (kafka_errors.MessageSizeTooLargeError, ProduceError.MESSAGE_TOO_LARGE),
        (kafka_errors.RecordListTooLargeError, ProduceError.MESSAGE_TOO_LARGE),
        (kafka_errors.InvalidTimestampError, ProduceError.INVALID_TIMESTAMP),
        (kafka_errors.ProducerFencedError, ProduceError.PRODUCER_FENCED),
        (kafka_errors.InvalidProducerEpochError, ProduceError.INVALID_PRODUCER_EPOCH),
        (kafka_errors.OutOfOrderSequenceNumberError, ProduceError.SEQUENCE_LOST),
        (kafka_errors.UnknownProducerIdError, ProduceError.SEQUENCE_LOST),
        (kafka_errors.NotLeaderForPartitionError, ProduceError.RETRIABLE),
        (kafka_errors.NetworkExceptionError, ProduceError.RETRIABLE),
        (kafka_errors.CorrelationIdError, ProduceError.RETRIABLE),
        (kafka_errors.UnknownBrokerIdError, ProduceError.RETRIABLE),
        (kafka_errors.KafkaConnectionError, ProduceError.DISCONNECTED),
        (ConnectionResetError, ProduceError.DISCONNECTED),
        (kafka_errors.TopicAuthorizationFailedError, ProduceError.TOPIC_AUTHORIZATION_FAILED),
        (kafka_errors.ClusterAuthorizationFailedError, ProduceError.CLUSTER_AUTHORIZATION_FAILED),
        (
            kafka_errors.TransactionalIdAuthorizationFailedError,
            ProduceError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
        (kafka_errors.GroupAuthorizationFailedError, ProduceError.FATAL),
        (kafka_errors.for_code(9_999), ProduceError.FATAL),
    ],
)
def test_errors_have_a_class(error, expected):
    assert failure_of(error, "why") == Failure(expected, "why")


def test_an_error_without_a_message_has_a_reason():
    described = failure_of(kafka_errors.NotLeaderForPartitionError, "").reason
    assert described.startswith("This error is thrown if the client attempts to send messages")
    assert failure_of(TimeoutError, "").reason == "TimeoutError"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (kafka_errors.UnknownBrokerIdError(7), "the metadata name broker 7, and no address of it"),
        (kafka_errors.LeaderNotAvailableError(), "there is currently no leader"),
        (kafka_errors.ListenerNotFoundError, "There is no listener"),
    ],
)
def test_a_broker_that_is_not_available_is_named(error, reason):
    raised = ErrorMapper("broker:9092", 1).request_error("a request for offsets", error, ())
    assert type(raised) is LeaderUnavailableError
    assert reason in str(raised)
    if isinstance(error, kafka_errors.UnknownBrokerIdError):
        assert reason_of(error) == reason


def test_a_call_is_repeated_while_its_errors_may_pass():
    errors = [kafka_errors.CoordinatorNotAvailableError(), ConnectionResetError()]

    def call() -> str:
        if errors:
            raise errors.pop()
        return "answer"

    assert ErrorMapper("broker:9092", 60_000).retry(call, 0.001) == "answer"
    errors[:] = [kafka_errors.TopicAuthorizationFailedError()]
    with pytest.raises(kafka_errors.TopicAuthorizationFailedError):
        ErrorMapper("broker:9092", 60_000).retry(call, 0.001)
    errors[:] = [kafka_errors.CoordinatorNotAvailableError(), ConnectionResetError()]
    with pytest.raises(ConnectionResetError):
        ErrorMapper("broker:9092", 1).retry(call, 60)


@pytest.mark.parametrize(
    "cut_short", [BrokerUnreachableError("broker:9092", 1), kafka_errors.KafkaTimeoutError()]
)
def test_a_call_that_is_cut_short_hides_no_earlier_reason(cut_short):
    call = Mock(side_effect=[kafka_errors.CorrelationIdError("it lies"), *[cut_short] * 1_000])
    with pytest.raises(kafka_errors.CorrelationIdError, match="it lies"):
        ErrorMapper("broker:9092", 50).retry(call, 0.01)
    assert call.call_count > 1
