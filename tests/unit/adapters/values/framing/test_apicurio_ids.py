"""Values as Apicurio's own serializers frame them: long ids in front, or ids in headers."""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    pairs = [others, *(headers or [None] * len(values)), others]
    return ValueFraming(options, registry).payloads(array, pa.array(pairs, HEADERS)[1:-1])


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


PIECES: Final = [
    *[b"\0" + long_id(number) for number in (0, 1, 2, 2**33, -1)],
    *[b"\0\0\0\0\1", b"\0\xff\xff\xff\xff", long_id(1), long_id(5), long_id(-2)],
    *[ref("A"), ref("B"), ref("B" * 125), ref("A")[:-1], b"\x83\x0a\x81", b"\2\x0a\0", b"\0", b"x"],
]
FRAMED: Final = st.lists(st.sampled_from(PIECES), max_size=4).map(b"".join)
NAMES: Final = [CONTENT, GLOBAL, MESSAGE, "x"]
ROWS: Final = st.lists(
    st.tuples(
        st.none() | FRAMED,
        st.none() | st.lists(st.tuples(st.sampled_from(NAMES), st.none() | FRAMED)),
    ),
    min_size=1,
    max_size=20,
)


@settings(max_examples=200, deadline=None)
@given(
    rows=ROWS,
    framing=st.sampled_from([Framing.APICURIO, Framing.APICURIO_GLOBAL]),
    form=st.sampled_from(["avro", "protobuf"]),
)
def test_payloads_are_those_of_a_plain_parser(rows, framing, form):
    values, headers = [value for value, _ in rows], [pairs for _, pairs in rows]
    payloads = framed(values, Apicurio(), headers, form=form, framing=framing)
    schemas = [payloads.schemas[one] if one >= 0 else None for one in payloads.writers.tolist()]
    names = [one and one.message_name for one in schemas]
    found = list(zip(parts(payloads), outcomes(payloads), names, strict=True))
    wanted = [plain(value, dict(pairs or []), framing, form) for value, pairs in rows]
    assert found == wanted


def plain(
    value: bytes | None, headers: dict[str, bytes | None], framing: Framing, form: str
) -> tuple[bytes | None, Any, str | None]:
    """Return a payload, the id as it is shown or what is wrong, and the name of the message."""
    if value is None:
        return None, None, None
    kind = next((one for one in (CONTENT, GLOBAL) if one in headers), None)
    is_global = kind == GLOBAL or (kind is None and framing is Framing.APICURIO_GLOBAL)
    number = b""
    if kind is not None:
        number = headers[kind] or b""
        number = number if len(number) == 8 else b""
    elif value[:1] == b"\0" and len(value) >= 5:
        number = value[1:9] if value[1:5] == bytes(4) and len(value) >= 9 else value[1:5]
        value = value[1 + len(number) :]
    schema_id = int.from_bytes(number, "big", signed=len(number) == 8) if number else -1
    if schema_id < 0:
        return value, Reason.NO_FRAMING, None
    name = None
    if form == "protobuf":
        length = value[0] if value else 0
        text = value[3 : 1 + length]
        is_ref = 2 < length <= 127 and value[: 1 + length] == bytes([length, 10, length - 2]) + text
        is_ref = is_ref and len(text) == length - 2
        name = text.decode() if is_ref else None
        if kind is not None and MESSAGE in headers:
            name = (headers[MESSAGE] or b"").decode("utf-8", "replace")
            is_ref = is_ref and text == (headers[MESSAGE] or b"")
        value = value[1 + length :] if is_ref else value
        if name is None:
            return value, Reason.UNKNOWN_MESSAGE, None
    if schema_id not in ({1, 5, 2**33} if is_global else {1, 2}):
        return value, Reason.UNKNOWN_SCHEMA, None
    return value, f"{schema_id} (globalId)" if is_global else schema_id, name
