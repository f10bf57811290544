from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.dead_letter import (
    CONNECTOR_NAME,
    EXCEPTION_CLASS_NAME,
    EXCEPTION_MESSAGE,
    HEADERS,
    OFFSET,
    PARTITION,
    REASON,
    REASONS,
    TOPIC,
    DeadLetter,
    Header,
    original_headers,
)
from pyspark_kafka.domain.values.errors import FailureReason

ORIGIN: Final[list[Header]] = [(TOPIC, b"orders"), (PARTITION, b"3"), (OFFSET, b"17")]
STACK_TRACE: Final = "__connect.errors.exception.stacktrace"


def test_headers_say_where_a_record_was_and_what_is_wrong():
    """Other headers of the record are of no interest."""
    headers = [
        ("trace", b"\xff"),
        *ORIGIN,
        (CONNECTOR_NAME, b"query"),
        (EXCEPTION_CLASS_NAME, b"MalformedValueError"),
        (EXCEPTION_MESSAGE, "größe".encode()),
        (REASON, b"BAD_UTF8"),
    ]
    letter = DeadLetter(TopicPartition("orders", 3), 17, "BAD_UTF8", "query", "größe")
    assert DeadLetter.from_headers(headers) == letter
    assert letter.has_known_reason


def test_kafka_connects_letters_have_its_exception_for_a_reason():
    """Connect writes no header of ours."""
    java = "org.apache.kafka.connect.errors.DataException"
    read = DeadLetter.from_headers([*ORIGIN, (EXCEPTION_CLASS_NAME, java.encode())])
    assert read == DeadLetter(TopicPartition("orders", 3), 17, java)
    assert not read.has_known_reason


def test_a_letter_needs_no_reason_and_no_valid_text():
    """Bytes of other programs do not stop who lists letters."""
    read = DeadLetter.from_headers([*ORIGIN, (EXCEPTION_MESSAGE, b"\xff")])
    assert read == DeadLetter(TopicPartition("orders", 3), 17, "unknown", error="\ufffd")


@pytest.mark.parametrize("missing", ORIGIN, ids=lambda header: header[0])
def test_a_record_without_an_origin_is_no_letter(missing):
    assert DeadLetter.from_headers([one for one in ORIGIN if one != missing]) is None
    assert DeadLetter.from_headers([*ORIGIN, (missing[0], None)]) is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (PARTITION, b"many"),
        (PARTITION, b"-1"),
        (PARTITION, b"2147483648"),
        (OFFSET, b"many"),
        (OFFSET, b"-1"),
        (OFFSET, b"9223372036854775808"),
        (OFFSET, b"9" * 5_000),
    ],
)
def test_a_place_that_no_record_has_is_no_letter(name, value):
    """Anyone can write such headers; Kafka Connect writes -1 where it knows no record."""
    assert DeadLetter.from_headers([*ORIGIN, (name, value)]) is None


def test_the_last_place_of_a_partition_is_one():
    """The bounds are those of Kafka's types."""
    last = [(PARTITION, b"2147483647"), (OFFSET, b"9223372036854775807")]
    assert DeadLetter.from_headers([*ORIGIN, *last]) is not None


def test_the_last_header_of_a_name_counts():
    """A letter that was read from another dead-letter topic has the headers of both."""
    later: list[Header] = [(TOPIC, b"letters"), (PARTITION, b"0"), (OFFSET, b"2")]
    read = DeadLetter.from_headers([*ORIGIN, *later])
    assert read == DeadLetter(TopicPartition("letters", 0), 2, "unknown")
    assert original_headers([*ORIGIN, *later]) == ORIGIN


def test_original_headers_keep_their_order():
    headers: list[Header] = [
        ("b", b"1"),
        (TOPIC, b"t"),
        ("a", None),
        ("b", b"1"),
        (STACK_TRACE, b"at ..."),
    ]
    assert original_headers(headers) == [("b", b"1"), ("a", None), ("b", b"1")]


def test_a_letter_of_kafka_connect_keeps_its_stack_trace():
    """Letters of this library have none."""
    connects: list[Header] = [*ORIGIN, (STACK_TRACE, b"at org.Example")]
    assert original_headers([*connects, *((name, b"x") for name in HEADERS)]) == connects
    assert original_headers(connects) == []


@given(st.lists(st.tuples(st.sampled_from([*HEADERS, "a", "b"]), st.none() | st.binary())))
def test_a_letters_headers_are_removed(headers):
    assert original_headers([*headers, *((name, b"x") for name in HEADERS)]) == headers


def test_each_reason_has_its_number():
    """Kernels write numbers, which are places in the list of names."""
    assert [FailureReason[name] for name in REASONS] == list(range(len(REASONS)))
