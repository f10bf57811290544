"""Values as Apicurio's own serializers frame them: long ids in front, or ids in headers."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.memory.schema_registry import MemorySchemaRegistry
from pyspark_kafka.adapters.values.framing.value_framing import ValueFraming
from pyspark_kafka.domain.values.errors import FailureReason as Reason
from pyspark_kafka.domain.values.errors import describe_failure
from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.domain.values.value_options import Framing, ValueOptions
from pyspark_kafka.ports.record_schema import HEADERS
from pyspark_kafka.ports.values.value_format import Payloads

from .test_value_framing import parts

CONTENT = "apicurio.value.contentId"
GLOBAL = "apicurio.value.globalId"


@pytest.fixture
def registry():
    """Return a registry with two schemas, whose ids are 1 and 2."""
    registry = MemorySchemaRegistry()
    for text in ('"int"', '"long"'):
        registry.register("s", Schema(SchemaType.AVRO, text))
    return registry


def framed(
    values: Sequence[bytes | None],
    registry: MemorySchemaRegistry | None,
    headers: Sequence[Any] | None = None,
    column: str = "value",
) -> Payloads:
    """Return the payloads of values and headers that are slices of longer arrays."""
    options = ValueOptions(column, "avro", framing=Framing.APICURIO)
    array = pa.array([b"before", *values, b"after"], pa.binary())[1:-1]
    others = [(CONTENT, long_id(9))]
    given = [others, *(headers or [None] * len(values)), others]
    return ValueFraming(options, registry).payloads(array, pa.array(given, HEADERS)[1:-1])


def long_id(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


def outcomes(payloads: Payloads) -> list[Any]:
    """Return the id of each value's schema, or why it has none."""
    rows = range(len(payloads.starts))
    return [Reason(payloads.reasons[row]) or payloads.schema_id(row) for row in rows]


def test_ids_of_eight_and_of_four_bytes_are_in_front(registry):
    """Numbers below 2^32 are not zero, as in ``OptimisticFallbackIdHandler`` of Apicurio."""
    values = [b"\0" + long_id(2) + b"long", None, b"\0\0\0\0\1int", b"\0" + long_id(1)]
    payloads = framed(values, registry)
    assert parts(payloads) == [b"long", None, b"int", b""]
    assert outcomes(payloads) == [2, None, 1, 1]
    assert [one.schema.text for one in payloads.schemas] == ['"int"', '"long"']


def test_ids_are_in_the_last_header_of_the_name(registry):
    headers = [
        [(CONTENT, long_id(1)), ("other", b""), (CONTENT, long_id(2))],
        [],
        [(GLOBAL, long_id(5)), (CONTENT, long_id(1))],
        [("apicurio.key.contentId", long_id(2))],
        [(CONTENT, long_id(1))],
    ]
    values = [b"\0a", b"\0\0\0\0\1b", b"c", b"d", None]
    payloads = framed(values, registry, headers)
    assert parts(payloads)[:3] == [b"\0a", b"b", b"c"]
    assert outcomes(payloads) == [2, 1, 1, Reason.NO_FRAMING, None]


def test_keys_have_headers_of_their_own(registry):
    payloads = framed([b"k"], registry, [[("apicurio.key.contentId", long_id(2))]], column="key")
    assert outcomes(payloads) == [2]


@pytest.mark.parametrize(
    ("value", "headers", "wanted"),
    [
        (b"", [], Reason.NO_FRAMING),
        (b"\0\0\0\0", [], Reason.NO_FRAMING),
        (b"\1" + long_id(1), [], Reason.NO_FRAMING),
        (b"\0" + long_id(-1), [], Reason.UNKNOWN_SCHEMA),
        (b"\0" + long_id(7), [], Reason.UNKNOWN_SCHEMA),
        (b"\0" + long_id(2**31), [], Reason.UNKNOWN_SCHEMA),
        (b"x", [(CONTENT, b"\0\0\0\1")], Reason.NO_FRAMING),
        (b"x", [(CONTENT, None)], Reason.NO_FRAMING),
        (b"x", [(CONTENT, long_id(-1))], Reason.NO_FRAMING),
        (b"\0" + long_id(1), [(GLOBAL, long_id(1))], Reason.UNKNOWN_SCHEMA),
    ],
)
def test_bad_framings(registry, value, headers, wanted):
    payloads = framed([b"\0\0\0\0\1good", value], registry, [[], headers])
    assert outcomes(payloads) == [1, wanted]


def test_errors_say_what_to_set(registry):
    payloads = framed([b"x"], registry, [[(GLOBAL, long_id(1))]])
    found = describe_failure(Reason.UNKNOWN_SCHEMA, schema_id=payloads.schema_id(0) or "")
    assert "'apicurio.registry.use-id' of the producers to contentId" in found
    options = ValueOptions("value", "avro", framing=Framing.CONFLUENT)
    values = pa.array([b"\0" + long_id(1)], pa.binary())
    schema_id = ValueFraming(options, registry).payloads(values).schema_id(0)
    assert schema_id == 0
    assert "set 'valueFraming'" in describe_failure(Reason.UNKNOWN_SCHEMA, schema_id=schema_id)


def test_ids_are_skipped_without_a_registry():
    payloads = framed([b"\0" + long_id(7) + b"x", b"y"], None, [[], [(GLOBAL, long_id(1))]])
    assert parts(payloads) == [b"x", b"y"]
    assert outcomes(payloads) == [None, None]
    assert not payloads.schemas


def test_batches_without_rows(registry):
    assert outcomes(framed([], registry)) == []
    assert outcomes(framed([None], registry)) == [None]
