"""The payloads of batches, and the schemas that their framing names."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_kafka.adapters.memory.schema_registry import MemorySchemaRegistry, guid_of
from pyspark_kafka.adapters.values.framing.value_framing import ValueFraming
from pyspark_kafka.adapters.values.framing.wire_format import guid_header, id_prefix
from pyspark_kafka.domain.values.errors import FailureReason as Reason
from pyspark_kafka.domain.values.errors import RegistryUnavailableError
from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.domain.values.value_options import Framing, SubjectNameStrategy, ValueOptions
from pyspark_kafka.ports.record_schema import HEADERS
from pyspark_kafka.ports.values.value_format import Payloads, WriterSchema

from .plain_framing import HEADER, plain_payload

SCHEMAS: Final = [Schema(SchemaType.AVRO, text) for text in ('"int"', '"long"', '"string"')]
GUIDS: Final = list(map(guid_of, SCHEMAS))
CONFLUENT: Final = [framing for framing in Framing if not framing.is_apicurios]
UNKNOWN_GUID: Final = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def registry():
    """Return a registry with three schemas, whose ids are 1, 2 and 3."""
    registry = MemorySchemaRegistry()
    assert [registry.register("s", schema) for schema in SCHEMAS] == [1, 2, 3]
    return registry


def framed(
    values: Sequence[bytes | None],
    registry: MemorySchemaRegistry | None,
    framing: Framing = Framing.CONFLUENT,
    headers: list[Any] | None = None,
    form: str = "avro",
    column: str = "value",
) -> Payloads:
    """Return the payloads of values that are a slice of a longer array."""
    options = ValueOptions(column, form, framing=framing)
    array = pa.array([b"before", *values, b"after"], pa.binary())[1:-1]
    before: Any = [("other", b"x"), (HEADER, b"")]
    column_of_headers = pa.array([before, *headers, before], HEADERS)[1:-1] if headers else None
    return ValueFraming(options, registry).payloads(array, column_of_headers)


def parts(payloads: Payloads) -> list[bytes | None]:
    """Return the bytes of each payload, or ``None`` for a tombstone."""
    data = payloads.values.buffers()[2]
    assert data is not None
    content = data.to_pybytes()
    ends = payloads.ends.tolist()
    starts = payloads.starts.tolist()
    return [
        None if start == -1 else content[start:end] for start, end in zip(starts, ends, strict=True)
    ]


def reasons(payloads: Payloads) -> list[Reason]:
    return [Reason(reason) for reason in payloads.reasons.tolist()]


def ids(payloads: Payloads) -> list[int | str | None]:
    return [payloads.schema_id(row) for row in range(len(payloads.values))]


def test_a_batch_without_rows_has_no_payloads_with_any_framing(registry):
    for framing in Framing:
        options = ValueOptions("value", "avro", framing=framing)
        payloads = ValueFraming(options, registry).payloads(pa.array([], pa.binary()))
        assert (len(payloads.starts), len(payloads.writers), payloads.schemas) == (0, 0, ())


def test_each_value_has_the_schema_of_its_id(registry):
    values = [id_prefix(2) + b"b", None, id_prefix(1) + b"a", id_prefix(2), id_prefix(1) + b"aa"]
    payloads = framed(values, registry)
    assert parts(payloads) == [b"b", None, b"a", b"", b"aa"]
    assert reasons(payloads) == [Reason.NONE] * 5
    assert payloads.schemas == (WriterSchema(2, SCHEMAS[1]), WriterSchema(1, SCHEMAS[0]))
    assert payloads.writers.tolist() == [0, -1, 1, 0, 1]
    assert ids(payloads) == [2, None, 1, 2, 1]


def test_a_guid_may_be_in_front_of_a_value(registry):
    """As Confluent's deserializers read it, though their serializers put GUIDs into headers."""
    values = [guid_header(GUIDS[1]) + b"b", id_prefix(1) + b"a", guid_header(UNKNOWN_GUID)]
    for framing in (Framing.CONFLUENT, Framing.CONFLUENT_HEADER):
        headers: list[Any] | None = None if framing is Framing.CONFLUENT else [[], [], [], []]
        payloads = framed([*values, guid_header(GUIDS[0])[:-1]], registry, framing, headers)
        assert parts(payloads)[:2] == [b"b", b"a"]
        assert ids(payloads) == [GUIDS[1], 1, UNKNOWN_GUID, None]
        assert reasons(payloads)[2:] == [Reason.UNKNOWN_SCHEMA, Reason.NO_FRAMING]


def test_ids_beyond_those_of_java_are_not_looked_up():
    """Registries answer anything to an id that is no Java int: none of them has it."""
    registry = CountingRegistry()
    framed([id_prefix(2**31), id_prefix(2**32 - 1)], registry)  # type: ignore[arg-type]
    assert registry.asked == []


class CountingRegistry:
    """Knows every id, and notes which ones were asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def by_id(self, schema_id: int, _subject: str | None = None) -> Schema:
        self.asked.append(schema_id)
        return SCHEMAS[0]


def test_each_id_of_a_batch_is_looked_up_once():
    registry = CountingRegistry()
    numbers = np.random.default_rng(1).integers(1, 5_000, 20_000).tolist()
    payloads = framed([id_prefix(number) for number in numbers], registry)  # type: ignore[arg-type]
    assert registry.asked == list(dict.fromkeys(numbers))
    assert ids(payloads) == numbers


def test_ids_are_skipped_without_a_registry():
    payloads = framed([id_prefix(7) + b"a", b"b", None], None)
    assert parts(payloads) == [b"a", b"b", None]
    assert reasons(payloads) == [Reason.NONE, Reason.NO_FRAMING, Reason.NONE]
    assert (payloads.writers.tolist(), payloads.schemas) == ([-1] * 3, ())


def test_protobufs_indexes_are_a_part_of_the_framing_and_of_the_writers_schema(registry):
    indexes = [(0,), (1,), (0, 2), (0,)]
    values = [id_prefix(1, each) + b"m" for each in indexes]
    payloads = framed([*values, id_prefix(1) + b"\2\0m"], registry, form="protobuf")
    assert parts(payloads) == [b"m"] * 5
    found = [payloads.schemas[writer].message_indexes for writer in payloads.writers.tolist()]
    assert found == [*indexes, (0,)]


@pytest.mark.parametrize(
    ("indexes", "reason"),
    [
        (b"", Reason.TRUNCATED),
        (b"\2", Reason.TRUNCATED),
        (b"\4\0", Reason.TRUNCATED),
        (b"\x80", Reason.TRUNCATED),
        (b"\1", Reason.UNKNOWN_MESSAGE),
        (b"\x42" + bytes(33), Reason.UNKNOWN_MESSAGE),
        (b"\xfe\xff\xff\xff\x0f", Reason.UNKNOWN_MESSAGE),
        (b"\xff\xff\xff\xff\x1f", Reason.BAD_VARINT),
        (b"\x80\x80\x80\x80\x80\0", Reason.BAD_VARINT),
        (b"\2\1", Reason.UNKNOWN_MESSAGE),
    ],
)
def test_message_indexes_that_are_none(registry, indexes, reason):
    bad, good = id_prefix(1) + indexes, id_prefix(1, (0,)) + b"m"
    payloads = framed([good, bad, good], registry, form="protobuf")
    assert reasons(payloads) == [Reason.NONE, reason, Reason.NONE]
    assert parts(payloads) == [b"m", bad, b"m"]


def test_as_many_message_indexes_as_allowed(registry):
    """A message may be nested 32 deep."""
    deep = tuple(range(32))
    payloads = framed([id_prefix(1, deep)], registry, form="protobuf")
    assert payloads.schemas == (WriterSchema(1, SCHEMAS[0], deep),)


def test_keys_have_a_header_of_their_own(registry):
    headers = [[(HEADER, guid_header(GUIDS[0])), ("__key_schema_id", guid_header(GUIDS[1]))]]
    payloads = framed([b"k"], registry, Framing.CONFLUENT_HEADER, headers, column="key")
    assert ids(payloads) == [GUIDS[1]]


def test_framings_that_need_the_headers_fail_without_them(registry):
    needing = [
        framing
        for framing in Framing
        if ValueFraming(ValueOptions("value", "avro", framing=framing)).needs_headers
    ]
    assert needing == [Framing.CONFLUENT_HEADER, Framing.APICURIO, Framing.APICURIO_GLOBAL]
    for framing in needing:
        with pytest.raises(ValueError, match="needs the headers"):
            framed([b"a"], registry, framing)


@pytest.mark.parametrize(
    ("options", "subject"),
    [
        ({}, "orders-value"),
        ({"subject": ":.lsrc:s"}, ":.lsrc:s"),
        ({"subject_name_strategy": SubjectNameStrategy.RECORD_NAME}, None),
        ({"subject_name_strategy": SubjectNameStrategy.RECORD_NAME, "subject": "s"}, "s"),
    ],
)
def test_ids_and_guids_are_those_of_the_subject_of_the_topic(options, subject):
    """Registries number schemas per context, which the subject names."""
    asked: list[object] = []

    class Registry:
        def by_id(self, schema_id: int, subject: str | None) -> Schema:
            asked.append((schema_id, subject))
            return SCHEMAS[0]

        def by_guid(self, guid: str, subject: str | None) -> Schema:
            asked.append((guid, subject))
            return SCHEMAS[0]

    given = ValueOptions("value", "avro", framing=Framing.CONFLUENT_HEADER, **options)
    headers = pa.array([[], [(HEADER, guid_header(GUIDS[0]))]], HEADERS)
    values = pa.array([id_prefix(5), b""], pa.binary())
    ValueFraming(given, Registry()).payloads(values, headers, "orders")  # type: ignore[arg-type]
    assert asked == [(5, subject), (GUIDS[0], subject)]


def test_a_registry_that_is_down_fails_the_batch():
    class Down:
        def by_id(self, _schema_id: int, _subject: str | None = None) -> Schema:
            raise RegistryUnavailableError("http://registry", "it is down")

    with pytest.raises(RegistryUnavailableError):
        framed([id_prefix(1)], Down())  # type: ignore[arg-type]


PIECES: Final = [
    *[id_prefix(number) for number in (0, 1, 2, 3, 4, 2**31 - 1, 2**31, 2**32 - 1)],
    *[guid_header(GUIDS[0]), guid_header(GUIDS[0], (4, 1)), guid_header(UNKNOWN_GUID)],
    *[guid_header(GUIDS[1])[:-1], b"\2" + bytes(16), b"\0\0\0\0", b'{"a":1}'],
    *[b"\0", b"\1", b"\2", b"\4", b"\x80", b"\xff\xff", b"\2\6", b"\x40", b"x" * 9],
]
FRAMED: Final = st.lists(st.sampled_from(PIECES), max_size=4).map(b"".join)
ROWS: Final = st.lists(
    st.tuples(
        st.none() | FRAMED,
        st.none() | st.lists(st.tuples(st.sampled_from([HEADER, "x"]), st.none() | FRAMED)),
    ),
    min_size=1,
    max_size=20,
)


@settings(max_examples=200, deadline=None)
@given(rows=ROWS, framing=st.sampled_from(CONFLUENT), form=st.sampled_from(["avro", "protobuf"]))
def test_the_kernel_agrees_with_a_plain_parser(rows, framing, form):
    registry = MemorySchemaRegistry()
    for schema in SCHEMAS:
        registry.register("s", schema)
    values, headers = [value for value, _ in rows], [given for _, given in rows]
    payloads = framed(values, registry, framing, headers, form)
    found = zip(parts(payloads), reasons(payloads), writers_of(payloads), strict=True)
    known: set[int | str] = {1, 2, 3, *GUIDS}
    expected = [plain_payload(value, given, framing, form, known) for value, given in rows]
    assert list(found) == expected


def writers_of(payloads: Payloads) -> list[object]:
    """Return the id and the message indexes of each value; only the id of an unknown schema."""
    return [
        (payloads.schemas[writer].schema_id, payloads.schemas[writer].message_indexes)
        if writer >= 0
        else payloads.schema_id(row)
        for row, writer in enumerate(payloads.writers.tolist())
    ]
