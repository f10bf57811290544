"""Fetch and produce requests and responses, held against kafka-python's own."""

import struct
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import errors as kafka_errors
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.consumer import FetchResponse as TheirResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from pyspark_kafka.adapters.kafka_format.batch_headers import AbortedTransaction
from pyspark_kafka.adapters.kafka_python.wire import (
    BY_ID_VERSION,
    DIVERGING_VERSION,
    MAX_FETCH_VERSION,
    MAX_PRODUCE_VERSION,
    MIN_FETCH_VERSION,
    MIN_PRODUCE_VERSION,
    NO_REPLICA,
    NO_TAGS,
    FetchedData,
    FetchPosition,
    FetchResponse,
    FetchSettings,
    ProduceSettings,
    responses_of,
)
from pyspark_kafka.domain.reading.leader_epochs import EpochEndOffset
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.batch import Failure, ProduceError

NAMED = range(MIN_FETCH_VERSION, MAX_FETCH_VERSION + 1)
VERSIONS = pytest.mark.parametrize("version", [*NAMED, BY_ID_VERSION])
FIXED = range(MIN_FETCH_VERSION, DIVERGING_VERSION)
FIXED_VERSIONS = pytest.mark.parametrize("version", FIXED)
DIVERGING_VERSIONS = pytest.mark.parametrize("version", [DIVERGING_VERSION, BY_ID_VERSION])
CORRELATION = 7
RECORDS = b"what was fetched"
INT32_MAX = 2**31 - 1

PARTITION = TopicPartition("tøpic", 3)
TOPIC_IDS = {name: UUID(int=number) for number, name in enumerate(("tøpic", "one", "two"), 1)}
TOPICS: Mapping[UUID | None, str] = {topic_id: name for name, topic_id in TOPIC_IDS.items()}

THEIR_TOPIC = TheirResponse.FetchableTopicResponse
THEIR_PARTITION = THEIR_TOPIC.PartitionData


def partition(version: int, **given: Any) -> Any:
    fields = {
        "partition_index": 3,
        "error_code": 0,
        "high_watermark": 90,
        "last_stable_offset": 80,
        "log_start_offset": 10,
        "aborted_transactions": [
            THEIR_PARTITION.AbortedTransaction(producer_id=100 + number, first_offset=40 + number)
            for number in range(2)
        ],
        "preferred_read_replica": 2 if version >= 11 else NO_REPLICA,
        "records": RECORDS,
        **given,
    }
    return THEIR_PARTITION(**fields)


def topic(name: str, version: int, *partitions: Any) -> Any:
    named = {"topic_id": TOPIC_IDS[name]} if version >= BY_ID_VERSION else {"topic": name}
    return THEIR_TOPIC(partitions=list(partitions), **named)


def answer(version: int, *partitions: Any, error_code: int = 0) -> bytes:
    """Encode a response to one request, without its length."""
    topics = [topic("tøpic", version, *partitions)] if partitions else []
    theirs = TheirResponse(
        throttle_time_ms=1_500,
        error_code=error_code if version >= 7 else 0,
        session_id=0,
        responses=topics,
    )
    return framed(theirs, version)


def framed(theirs: Any, version: int) -> bytes:
    body: bytes = theirs.encode(version=version)
    tags = NO_TAGS if version >= DIVERGING_VERSION else b""
    return struct.pack(">i", CORRELATION) + tags + body


def read(frame: bytes | bytearray, version: int) -> FetchResponse:
    return FetchResponse.of(memoryview(frame), version, CORRELATION, TOPICS)


def read_one(frame: bytes | bytearray, version: int) -> FetchedData:
    return read(frame, version).of_partition(PARTITION)


@VERSIONS
def test_each_versions_fields_are_found_where_kafka_python_writes_them(version):
    frame = answer(version, partition(version))
    assert read(frame, version).throttle_s == 1.5
    found = read_one(frame, version)
    assert found.error is kafka_errors.NoError
    assert found.preferred_replica == (2 if version >= 11 else NO_REPLICA)
    assert found.aborted == (AbortedTransaction(40, 100), AbortedTransaction(41, 101))
    assert bytes(found.records) == RECORDS


@FIXED_VERSIONS
def test_records_stay_where_they_were_received(version):
    frame = bytearray(answer(version, partition(version)))
    found = read_one(frame, version)
    frame[-1] ^= 0xFF
    assert bytes(found.records) == frame[-len(RECORDS) :]


@VERSIONS
@pytest.mark.parametrize(
    "given",
    [{"records": None}, {"records": b""}, {"aborted_transactions": None}],
    ids=["null records", "empty records", "null transactions"],
)
def test_what_may_be_null_may_be_null(version, given):
    found = read_one(answer(version, partition(version, **given)), version)
    assert bytes(found.records) == (RECORDS if "records" not in given else b"")
    assert len(found.aborted) == (2 if "records" in given else 0)


@VERSIONS
@pytest.mark.parametrize(
    "error",
    [
        kafka_errors.OffsetOutOfRangeError,
        kafka_errors.NotLeaderForPartitionError,
        kafka_errors.UnknownError,
    ],
)
def test_a_partitions_error_is_reported(version, error):
    fields = {"error_code": error.errno, "records": None, "aborted_transactions": None}
    assert read_one(answer(version, partition(version, **fields)), version).error is error


@pytest.mark.parametrize("version", [*range(7, MAX_FETCH_VERSION + 1), BY_ID_VERSION])
@pytest.mark.parametrize("with_partition", [True, False])
def test_an_error_of_the_whole_answer_is_reported(version, with_partition):
    """A broker that fails a whole request says so at the top, with the partition or without."""
    failed = kafka_errors.ClusterAuthorizationFailedError.errno
    fields = {"error_code": failed, "records": RECORDS, "aborted_transactions": None}
    partitions = [partition(version, **fields)] if with_partition else []
    found = read_one(answer(version, *partitions, error_code=failed), version)
    assert found.error is kafka_errors.ClusterAuthorizationFailedError
    assert bytes(found.records) == (RECORDS if with_partition else b"")


@VERSIONS
def test_an_answer_without_a_topic_is_an_error(version):
    assert read_one(answer(version), version).error is kafka_errors.UnknownError


@VERSIONS
def test_an_answer_that_breaks_off_is_none(version):
    frame = answer(version, partition(version))
    for size in range(len(frame)):
        with pytest.raises(kafka_errors.KafkaProtocolError):
            read(frame[:size], version)


@VERSIONS
def test_any_byte_may_be_wrong(version):
    frame = answer(version, partition(version))
    for place in range(len(frame)):
        for byte in (0x00, 0x7F, 0x80, 0xFF):
            changed = bytearray(frame)
            changed[place] = byte
            try:
                found = read(bytes(changed), version)
            except kafka_errors.KafkaProtocolError:
                continue
            assert sum(len(each.records) for each in found.partitions.values()) <= len(frame)


@VERSIONS
def test_another_requests_answer_is_refused(version):
    frame = answer(version, partition(version))
    with pytest.raises(kafka_errors.KafkaProtocolError):
        FetchResponse.of(memoryview(frame), version, CORRELATION + 1)


@FIXED_VERSIONS
@pytest.mark.parametrize(
    ("of", "size"),
    [
        *(("records", size) for size in (len(RECORDS) + 1, INT32_MAX)),
        *(("transactions", size) for size in (3, 100_000, INT32_MAX)),
        *(("name", size) for size in (-1, -(2**15), 2**15 - 1)),
    ],
)
def test_more_than_there_are_bytes_is_refused(version, of, size):
    records = None if of == "transactions" else RECORDS
    frame = bytearray(answer(version, partition(version, records=records)))
    size_of_records = len(frame) - len(records or b"") - 4
    behind_transactions = size_of_records - (4 if version >= 11 else 0)
    place = {
        "records": size_of_records,
        "transactions": behind_transactions - 2 * 16 - 4,
        "name": frame.index("tøpic".encode()) - 2,
    }[of]
    struct.pack_into(">h" if of == "name" else ">i", frame, place, size)
    with pytest.raises(kafka_errors.KafkaProtocolError):
        read(bytes(frame), version)


@VERSIONS
def test_an_answer_of_several_partitions_is_read(version):
    topics = {
        TopicPartition(topic, number): b"%d of " % number + topic.encode()
        for topic in ("one", "two")
        for number in range(2)
    }
    theirs = TheirResponse(
        throttle_time_ms=0,
        error_code=0,
        session_id=0,
        responses=[
            topic(
                name,
                version,
                *(
                    partition(version, partition_index=each.partition, records=records)
                    for each, records in topics.items()
                    if each.topic == name
                ),
            )
            for name in ("one", "two")
        ],
    )
    found = read(framed(theirs, version), version)
    assert {each: bytes(data.records) for each, data in found.partitions.items()} == topics


@VERSIONS
def test_a_request_is_what_kafka_python_reads(version):
    settings = FetchSettings(
        client_id="me",
        rack="here",
        isolation_level=1,
        min_bytes=1,
        max_bytes=2,
        partition_bytes=3,
        max_wait_ms=4,
    )
    positions = {
        TopicPartition("t", 5): FetchPosition(6, 3, 4, UUID(int=ord("t"))),
        TopicPartition("ü", 0): FetchPosition(2**40, topic_id=UUID(int=ord("ü"))),
        TopicPartition("t", 1): FetchPosition(7, last_epoch=2**31 - 1, topic_id=UUID(int=ord("t"))),
    }
    sent = settings.request(positions, version=version, correlation_id=CORRELATION)
    theirs = FetchRequest.decode(sent, version=version, header=True, framed=True)
    assert (theirs.header.correlation_id, theirs.header.client_id) == (CORRELATION, "me")
    assert theirs.header.request_api_version == version
    assert (theirs.min_bytes, theirs.max_bytes, theirs.max_wait_ms) == (1, 2, 4)
    assert theirs.isolation_level == 1
    if version >= 7:
        assert (theirs.session_id, theirs.session_epoch) == (0, -1)
        assert theirs.forgotten_topics_data == []
    if version >= 11:
        assert theirs.rack_id == "here"
    wanted = [
        (
            chr(each.topic_id.int) if version >= BY_ID_VERSION else each.topic,
            one.partition,
            one.fetch_offset,
            one.partition_max_bytes,
        )
        for each in theirs.topics
        for one in each.partitions
    ]
    assert wanted == [("t", 5, 6, 3), ("t", 1, 7, 3), ("ü", 0, 2**40, 3)]
    sent_positions = [one for each in theirs.topics for one in each.partitions]
    if version >= 9:
        assert [one.current_leader_epoch for one in sent_positions] == [4, -1, -1]
    if version >= DIVERGING_VERSION:
        assert [one.last_fetched_epoch for one in sent_positions] == [3, 2**31 - 1, -1]
    if version >= 5:
        assert {one.log_start_offset for one in sent_positions} == {-1}


@VERSIONS
def test_a_broker_whose_log_is_the_same_names_no_epoch(version):
    assert read_one(answer(version, partition(version)), version).diverging is None


@DIVERGING_VERSIONS
@given(
    epoch=st.integers(-1, INT32_MAX), end_offset=st.integers(-1, 2**63 - 1), others=st.booleans()
)
def test_a_diverging_epoch_is_read(version, epoch, end_offset, *, others):
    tagged = {"diverging_epoch": THEIR_PARTITION.EpochEndOffset(epoch=epoch, end_offset=end_offset)}
    if others:
        tagged["current_leader"] = THEIR_PARTITION.LeaderIdAndEpoch(leader_id=7, leader_epoch=8)
    found = read_one(answer(version, partition(version, records=None, **tagged)), version)
    expected = EpochEndOffset(epoch, end_offset)
    # A field with its default values is not sent.
    assert found.diverging == expected or (found.diverging, epoch, end_offset) == (None, -1, -1)


@DIVERGING_VERSIONS
def test_a_diverging_epoch_beside_an_error_is_ignored(version):
    """The broker did not compare anything."""
    fenced = kafka_errors.FencedLeaderEpochError
    tagged = {"diverging_epoch": THEIR_PARTITION.EpochEndOffset(epoch=1, end_offset=2)}
    found = read_one(
        answer(version, partition(version, error_code=fenced.errno, **tagged)), version
    )
    assert (found.error, found.diverging) == (fenced, None)


def test_a_topic_that_was_not_asked_for_is_refused():
    frame = answer(BY_ID_VERSION, partition(BY_ID_VERSION))
    with pytest.raises(kafka_errors.KafkaProtocolError):
        FetchResponse.of(memoryview(frame), BY_ID_VERSION, CORRELATION)


def test_sizes_beyond_a_byte_are_read():
    records = b"x" * 100_000
    frame = answer(BY_ID_VERSION, partition(BY_ID_VERSION, records=records))
    assert bytes(read_one(frame, BY_ID_VERSION).records) == records


SETTINGS: Final = ProduceSettings(client_id="me", acks=-1, timeout_ms=30_000, needs_zstd=False)
PRODUCE_VERSIONS: Final = range(MIN_PRODUCE_VERSION, MAX_PRODUCE_VERSION + 1)


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
@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_requests_are_those_of_kafka_python(version, transactional_id):
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


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_response_has_an_outcome_for_each_partition(version):
    outcomes = responses_of(response({0: 0, 1: 45}, version), version, 7)
    assert outcomes[TopicPartition("t", 0)] is None
    failure = outcomes[TopicPartition("t", 1)]
    assert failure is not None
    assert failure.error is ProduceError.SEQUENCE_LOST


def test_a_broker_may_say_why():
    """The broker's message takes precedence over Kafka's description."""
    outcomes = responses_of(
        response({0: 87}, MAX_PRODUCE_VERSION, message="no key"), MAX_PRODUCE_VERSION, 7
    )
    assert outcomes == {TopicPartition("t", 0): Failure(ProduceError.FATAL, "no key")}


def test_what_a_broker_says_of_a_record_tells_more():
    of_record = "Timestamp 5 of message with offset 0 is out of range."
    frame = response({0: 32}, MAX_PRODUCE_VERSION, message="invalid", of_record=of_record)
    failure = Failure(ProduceError.INVALID_TIMESTAMP, of_record)
    assert responses_of(frame, MAX_PRODUCE_VERSION, 7) == {TopicPartition("t", 0): failure}


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_what_is_no_response(version):
    frame = response({0: 0}, version)
    with pytest.raises(kafka_errors.CorrelationIdError, match="7 answers 8"):
        responses_of(frame, version, 8)
    for size in (0, 3, 6, 12, len(frame) // 2):
        with pytest.raises(kafka_errors.KafkaProtocolError, match="cannot be read"):
            responses_of(frame[:size], version, 7)
    with pytest.raises(kafka_errors.KafkaProtocolError, match="not a partition number: -1"):
        responses_of(response({-1: 0}, version), version, 7)
