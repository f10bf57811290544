"""Values as Apicurio's own serializers frame them: long ids in front, or ids in headers."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.values.framing.value_framing import ValueFraming
from pyspark_kafka.domain.values.errors import FailureReason as Reason
from pyspark_kafka.domain.values.errors import UnknownSchemaError, describe_failure
from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.domain.values.value_options import Framing, ValueOptions
from pyspark_kafka.ports.record_schema import HEADERS
from pyspark_kafka.ports.values.value_format import Payloads

from .test_value_framing import parts

CONTENT = "apicurio.value.contentId"
GLOBAL = "apicurio.value.globalId"
MESSAGE = "apicurio.protobuf.type"


class Apicurio:
    """Has schemas with the content ids 1 and 2, and with the global ids 1, 5 and 2^33."""

    def by_id(self, schema_id: int, subject: str | None) -> Schema:  # noqa: ARG002
        return self._found({1: '"int"', 2: '"long"'}, schema_id, SchemaType.AVRO)

    def by_global_id(self, global_id: int, kind: SchemaType) -> Schema:
        return self._found({1: '"long"', 5: '"int"', 2**33: '"int"'}, global_id, kind)

    def _found(self, texts: dict[int, str], number: int, kind: SchemaType) -> Schema:
        if number not in texts:
            raise UnknownSchemaError("url", f"id {number}")
        return Schema(kind, texts[number])


@pytest.fixture
def registry():
    """Return a registry with content ids and global ids."""
    return Apicurio()


def framed(
    values: Sequence[bytes | None],
    registry: Any,
    headers: Sequence[Any] | None = None,
    column: str = "value",
    form: str = "avro",
    framing: Framing = Framing.APICURIO,
) -> Payloads:
    """Return the payloads of values and headers that are slices of longer arrays."""
    options = ValueOptions(column, form, framing=framing)
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
        (b"x", [(GLOBAL, long_id(7))], Reason.UNKNOWN_SCHEMA),
        (b"x", [(GLOBAL, b"")], Reason.NO_FRAMING),
    ],
)
def test_bad_framings(registry, value, headers, wanted):
    payloads = framed([b"\0\0\0\0\1good", value], registry, [[], headers])
    assert outcomes(payloads) == [1, wanted]


def test_ids_are_global_by_the_name_of_their_header(registry):
    """A value may look as if it had an id in front."""
    headers = [[(GLOBAL, long_id(5))], [(GLOBAL, long_id(2**33))], [(CONTENT, long_id(1))]]
    payloads = framed([b"\0" + long_id(1), b"", b"c"], registry, headers)
    assert outcomes(payloads) == ["5 (globalId)", f"{2**33} (globalId)", 1]
    assert parts(payloads) == [b"\0" + long_id(1), b"", b"c"]


def test_ids_in_front_are_global_by_the_option(registry):
    values = [b"\0" + long_id(1), b"\0\0\0\0\5int", b"\0" + long_id(7), b"c"]
    headers = [None, None, None, [(CONTENT, long_id(1))]]
    payloads = framed(values, registry, headers, framing=Framing.APICURIO_GLOBAL)
    assert outcomes(payloads) == ["1 (globalId)", "5 (globalId)", Reason.UNKNOWN_SCHEMA, 1]
    assert [one.schema.text for one in payloads.schemas] == ['"int"', '"long"', '"int"']


def ref(name: str) -> bytes:
    text = name.encode()
    return bytes([len(text) + 2, 10, len(text)]) + text


def messages(payloads: Payloads) -> list[Any]:
    """Return the message of each value, or why it has none."""
    return [
        Reason(reason) or payloads.schemas[writer].message_name
        for reason, writer in zip(payloads.reasons, payloads.writers, strict=True)
    ]


def test_messages_are_named_in_front_of_them(registry):
    named = [b"Order", b"Line", "Größe".encode(), b"Order", b"x" * 125]
    values = [b"\0" + long_id(1) + ref(one.decode()) + b"rest" for one in named]
    payloads = framed([*values, b"\0\0\0\0\2" + ref("A")], registry, form="protobuf")
    assert messages(payloads) == [*(one.decode() for one in named), "A"]
    assert parts(payloads) == [*[b"rest"] * 5, b""]
    assert outcomes(payloads) == [1] * 5 + [2]


@pytest.mark.parametrize("column", ["key", "value"])
def test_messages_are_named_in_headers(registry, column):
    """Serializers of Apicurio 3 also name them in front."""
    name = {"value": MESSAGE, "key": f"{MESSAGE}.key"}[column]
    number = (f"apicurio.{column}.globalId", long_id(5))
    headers = [[number, (name, b"Line"), (name, b"Order")], [number, (name, b"Order")], [number]]
    values = [b"rest", ref("Order") + b"rest", ref("Line") + b"rest"]
    payloads = framed(values, registry, headers, column, "protobuf")
    assert messages(payloads) == ["Order", "Order", "Line"]
    assert parts(payloads) == [b"rest"] * 3
    assert outcomes(payloads) == ["5 (globalId)"] * 3


def test_names_of_messages_that_are_not_of_the_value_are_kept(registry):
    """A payload that looks as if it named another message is one."""
    headers = [[(CONTENT, long_id(1)), (MESSAGE, b"Order")], [(MESSAGE, b"Order")]]
    values = [ref("Line"), b"\0" + long_id(1) + ref("Line")]
    payloads = framed(values, registry, headers, form="protobuf")
    assert messages(payloads) == ["Order", "Line"]
    assert parts(payloads) == [ref("Line"), b""]


@pytest.mark.parametrize(
    "payload", [b"", b"\0", ref("A")[:-1], b"\2\x0a\0", b"\4\x0a\1AB", b"\3\x12\1A", b"\x83\0"]
)
def test_messages_without_a_name(registry, payload):
    values = [b"\0" + long_id(1) + payload, b"\0" + long_id(1) + ref("A"), None]
    payloads = framed(values, registry, form="protobuf")
    assert payloads.reasons.tolist() == [Reason.UNKNOWN_MESSAGE, Reason.NONE, Reason.NONE]


def test_errors_say_what_to_set(registry):
    options = ValueOptions("value", "avro", framing=Framing.CONFLUENT)
    values = pa.array([b"\0" + long_id(1)], pa.binary())
    schema_id = ValueFraming(options, registry).payloads(values).schema_id(0)
    assert schema_id == 0
    found = describe_failure(Reason.UNKNOWN_SCHEMA, schema_id=schema_id)
    assert "set 'valueFraming' or 'keyFraming' to apicurio-global" in found
    assert "Apicurio" in describe_failure(Reason.UNKNOWN_MESSAGE)


def test_ids_are_skipped_without_a_registry():
    payloads = framed([b"\0" + long_id(7) + b"x", b"y"], None, [[], [(GLOBAL, long_id(1))]])
    assert parts(payloads) == [b"x", b"y"]
    assert outcomes(payloads) == [None, None]
    assert not payloads.schemas


def test_batches_without_rows(registry):
    assert outcomes(framed([], registry)) == []
    assert outcomes(framed([None], registry)) == [None]
