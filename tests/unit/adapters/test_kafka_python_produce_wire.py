"""Produce requests and responses, beside kafka-python's own."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import pytest
from kafka import errors as kafka_errors
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from pyspark_kafka.adapters.kafka_python.produce_wire import (
    MAX_VERSION,
    MIN_VERSION,
    ProduceSettings,
    responses_of,
)
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.requests import Failure, ProduceError

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS: Final = ProduceSettings(client_id="me", acks=-1, timeout_ms=30_000, needs_zstd=False)
VERSIONS: Final = range(MIN_VERSION, MAX_VERSION + 1)


def response(
    errors: Mapping[int, int],
    version: int,
    correlation_id: int = 7,
    message: str | None = None,
    of_record: str | None = None,
) -> memoryview:
    topic = ProduceResponse.TopicProduceResponse
    partition = topic.PartitionProduceResponse
    error = partition.BatchIndexAndErrorMessage
    records = [error(batch_index=0, batch_index_error_message=of_record)] if of_record else []
    encoded: Any = ProduceResponse(
        responses=[
            topic(
                name="t",
                partition_responses=[
                    partition(
                        index=index,
                        error_code=code,
                        base_offset=5,
                        log_append_time_ms=-1,
                        log_start_offset=0,
                        record_errors=records,
                        error_message=message,
                    )
                    for index, code in errors.items()
                ],
            )
        ],
        throttle_time_ms=0,
    ).encode(version=version)
    return memoryview(struct.pack(">i", correlation_id) + encoded)


@pytest.mark.parametrize("transactional_id", [None, "id"])
@pytest.mark.parametrize("version", VERSIONS)
def test_requests_are_those_of_kafka_python(version: int, transactional_id: str | None) -> None:
    """Byte for byte, with the batches of a topic together."""
    batches = {TopicPartition(topic, index): b"batch" for topic in "tu" for index in range(2)}
    written = SETTINGS.request(batches, transactional_id, version=version, correlation_id=7)
    topic = ProduceRequest.TopicProduceData
    theirs = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            topic(
                name=name,
                partition_data=[
                    topic.PartitionProduceData(index=index, records=b"batch") for index in range(2)
                ],
            )
            for name in "tu"
        ],
        max_version=version,
    )
    theirs.API_VERSION = version
    theirs.with_header(correlation_id=7, client_id="me")
    assert written == theirs.encode(version=version, framed=True, header=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_has_an_outcome_for_each_partition(version: int) -> None:
    """Nothing for those that are written."""
    outcomes = responses_of(response({0: 0, 1: 45}, version), version, 7)
    assert outcomes[TopicPartition("t", 0)] is None
    failure = outcomes[TopicPartition("t", 1)]
    assert failure is not None
    assert failure.error is ProduceError.SEQUENCE_LOST


def test_a_broker_may_say_why() -> None:
    """Its message takes precedence over Kafka's description."""
    outcomes = responses_of(response({0: 87}, MAX_VERSION, message="no key"), MAX_VERSION, 7)
    assert outcomes == {TopicPartition("t", 0): Failure(ProduceError.FATAL, "no key")}


def test_what_a_broker_says_of_a_record_tells_more() -> None:
    """Kafka says of the batch that a record is invalid, and of the record what is."""
    of_record = "Timestamp 5 of message with offset 0 is out of range."
    frame = response({0: 32}, MAX_VERSION, message="invalid", of_record=of_record)
    failure = Failure(ProduceError.INVALID_TIMESTAMP, of_record)
    assert responses_of(frame, MAX_VERSION, 7) == {TopicPartition("t", 0): failure}


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_no_response(version: int) -> None:
    """It answers another request, or it is truncated."""
    frame = response({0: 0}, version)
    with pytest.raises(kafka_errors.CorrelationIdError, match="7 answers 8"):
        responses_of(frame, version, 8)
    for size in (0, 3, 6, 12, len(frame) // 2):
        with pytest.raises(kafka_errors.KafkaProtocolError, match="cannot be read"):
            responses_of(frame[:size], version, 7)
    with pytest.raises(kafka_errors.KafkaProtocolError, match="not a partition number: -1"):
        responses_of(response({-1: 0}, version), version, 7)
