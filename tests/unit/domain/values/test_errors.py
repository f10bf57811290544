"""Tests of the failures of typed values: errors and counts."""

import inspect
import pickle
from typing import Final

import pytest

from pyspark_kafka.domain.errors import Fault, PysparkKafkaError
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values import errors
from pyspark_kafka.domain.values.errors import (
    FAILURE_TEXTS,
    BadRecordStats,
    DeadLetterLoopError,
    DecodedTooLargeError,
    FailureReason,
    IncompatibleSchemaError,
    MalformedValueError,
    NewSchemaError,
    RegistryRefusedError,
    RegistryUnavailableError,
    UnencodableValueError,
    UnknownSchemaError,
    describe_failure,
)
from pyspark_kafka.domain.values.registry import Schema, SchemaType, SubjectVersion

T0 = TopicPartition("t", 0)
URL = "http://registry:8081"
VERSION = SubjectVersion("t-value", 2, 7, Schema(SchemaType.AVRO, "{}"))

ERRORS: Final[list[tuple[PysparkKafkaError, type[Exception], Fault, str]]] = [
    (
        RegistryUnavailableError(URL, "it is down"),
        ConnectionError,
        Fault.CLUSTER,
        (
            "[KAFKA_SCHEMA_REGISTRY_UNAVAILABLE] The schema registry at http://registry:8081 "
            "cannot be used: it is down. Check the option 'schema.registry.url', that the "
            "registry is running, and that this machine can reach it. No record was skipped."
        ),
    ),
    (
        RegistryRefusedError(URL, "a login", "401"),
        PermissionError,
        Fault.USER,
        (
            "[KAFKA_SCHEMA_REGISTRY_REFUSED] The schema registry at http://registry:8081 refused "
            "a login: 401. Check the schema, the login ('schema.registry.basic.auth.user.info', "
            "'schema.registry.bearer.auth.token') and its rights."
        ),
    ),
    (
        UnknownSchemaError(URL, "subject 's'"),
        LookupError,
        Fault.DATA,
        (
            "[KAFKA_UNKNOWN_SCHEMA] The schema registry at http://registry:8081 has no subject "
            "'s'. Check the options 'schema.registry.url', 'valueSubject' and "
            "'valueSchemaVersion', and that the producers use this registry."
        ),
    ),
    (
        IncompatibleSchemaError("The schema of s", "a field is missing"),
        ValueError,
        Fault.USER,
        (
            "[KAFKA_INCOMPATIBLE_SCHEMA] The schema of s cannot be used: a field is missing. "
            "Change the schema so that the field is compatible, or lower the compatibility level "
            "of the subject."
        ),
    ),
    (
        MalformedValueError("value", T0, 5, "it ends too early"),
        ValueError,
        Fault.DATA,
        (
            "[KAFKA_MALFORMED_VALUE] The value of the record at offset 5 of t-0 cannot be "
            "decoded: it ends too early. To keep reading, set the option 'mode' to PERMISSIVE "
            "(the value becomes null) or DROPMALFORMED, or name a 'deadLetterTopic'."
        ),
    ),
    (
        NewSchemaError("value", T0, 5, VERSION, 3),
        ValueError,
        Fault.USER,
        (
            "[KAFKA_NEW_SCHEMA] The value of the record at offset 5 of t-0 has version 3 of the "
            "subject 't-value', and the query reads version 2. To read its new fields, restart "
            "the query with 'valueSchemaVersion' set to 3, or to 'latest' so that each start "
            "reads the latest version. To go on with version 2, set 'onNewSchema' to 'ignore'."
        ),
    ),
    (
        DeadLetterLoopError("bad"),
        ValueError,
        Fault.USER,
        (
            "[KAFKA_DEAD_LETTER_LOOP] The query reads its own dead-letter topic 'bad', so that "
            "each letter would become another one. Correct the option 'deadLetterTopic', or "
            "'subscribe', 'subscribePattern' or 'assign' so that the topic is not read."
        ),
    ),
    (
        DecodedTooLargeError(3),
        OverflowError,
        Fault.DATA,
        (
            "[KAFKA_DECODED_VALUES_TOO_LARGE] The decoded values of 3 records exceed 2 GiB in one"
            " column. Lower 'maxRecordBytes', or read fewer fields."
        ),
    ),
    (
        UnencodableValueError("value", 3, "a.b", "is null"),
        ValueError,
        Fault.USER,
        (
            "[KAFKA_UNENCODABLE_VALUE] The value of row 3 of a batch cannot be encoded: field "
            "'a.b' is null. Change the query so that the column fits the schema."
        ),
    ),
]


@pytest.mark.parametrize(("error", "kind", "fault", "text"), ERRORS)
def test_an_error_has_the_facts_the_fault_and_the_advice(error, kind, fault, text):
    assert isinstance(error, kind)
    assert (error.fault, str(error)) == (fault, text)
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(copied), str(copied), vars(copied)) == (type(error), text, vars(error))


def test_every_error_is_here():
    defined = {
        found
        for _, found in inspect.getmembers(errors, inspect.isclass)
        if found.__module__ == errors.__name__ and issubclass(found, Exception)
    }
    assert {type(error) for error, *_ in ERRORS} == defined
    assert len({error.condition for error, *_ in ERRORS}) == len(ERRORS)


def test_what_is_wrong_with_a_value():
    assert FAILURE_TEXTS.keys() == {*FailureReason} - {FailureReason.NONE}
    assert describe_failure(FailureReason.TRUNCATED) == "it ends too early"
    assert describe_failure(FailureReason.BAD_ENUM, "a.b", 0) == (
        "an enum has no such symbol (field 'a.b'), schema id 0"
    )


FOUND: Final = BadRecordStats({FailureReason.BAD_UTF8: 2, FailureReason.MALFORMED: 3}, 4)


def test_numbers_are_added_by_reason():
    more = BadRecordStats({FailureReason.MALFORMED: 1, FailureReason.TRUNCATED: 5}, 1)
    both = FOUND + more
    assert both.by_name() == {"MALFORMED": 4, "TRUNCATED": 5, "BAD_UTF8": 2}
    assert (both.total, both.dead_letters) == (11, 5)
    assert FOUND + BadRecordStats() == FOUND


def test_the_text_has_a_number_for_each_reason():
    assert str(FOUND) == "3 MALFORMED, 2 BAD_UTF8"
    assert str(BadRecordStats()) == ""


def test_numbers_travel_between_processes():
    assert pickle.loads(pickle.dumps(FOUND)) == FOUND  # noqa: S301  # our own
    assert BadRecordStats.from_names(FOUND.by_name(), FOUND.dead_letters) == FOUND


@pytest.mark.parametrize(
    ("by_name", "dead_letters"), [({"HUNGRY": 1}, 0), ({"MALFORMED": -1}, 0), ({}, -1)]
)
def test_what_is_no_number_of_bad_records_is_refused(by_name, dead_letters):
    """Unknown reasons and negative numbers come from a peer that is no task of ours."""
    with pytest.raises(ValueError, match="bad records"):
        BadRecordStats.from_names(by_name, dead_letters)
