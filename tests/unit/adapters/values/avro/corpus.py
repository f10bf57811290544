# ruff: noqa: E501  # a table
"""Values that Spark's ``from_avro`` and the decoder of Avro must read alike."""

import io
import json
import struct
from dataclasses import dataclass, field
from typing import Any, Final, final

import fastavro


@final
@dataclass(frozen=True, slots=True)
class Case:
    """Values of one writer's schema: Python values, or bytes that are the datum itself.

    ``differs`` are the numbers of the values that Spark reads otherwise, on purpose.
    """

    name: str
    writer: Any
    values: tuple[Any, ...]
    reader: Any = None
    options: dict[str, str] = field(default_factory=dict)
    differs: frozenset[int] = frozenset()

    def payloads(self) -> list[bytes]:
        """Return the datums."""
        return [
            one.data if isinstance(one, Raw) else _encoded(self.writer, one) for one in self.values
        ]

    @property
    def text(self) -> str:
        """The writer's schema as JSON."""
        return json.dumps(self.writer)

    @property
    def settings(self) -> dict[str, str]:
        """The options of Spark's ``from_avro``."""
        reader = {} if self.reader is None else {"avroSchema": json.dumps(self.reader)}
        return {**reader, **self.options}


@final
@dataclass(frozen=True, slots=True)
class Raw:
    """A datum that no writer writes, or that fastavro does not write so."""

    data: bytes


def _encoded(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, value)
    return stream.getvalue()


def record(*fields: tuple[Any, ...], name: str = "R", **attributes: Any) -> dict[str, Any]:
    """Return a record of fields: a name, a type, and perhaps a default."""
    parts: list[dict[str, Any]] = [
        {"name": one[0], "type": one[1], **({"default": one[2]} if len(one) > 2 else {})}
        for one in fields
    ]
    return {"type": "record", "name": name, "fields": parts, **attributes}


def one(type_: Any, *default: Any) -> dict[str, Any]:
    """Return a record of one field."""
    return record(("a", type_, *default))


def values(*all_: Any) -> tuple[Any, ...]:
    """Return values of a record of one field."""
    return tuple(each if isinstance(each, Raw) else {"a": each} for each in all_)


def fixed(size: int, name: str = "F", **attributes: Any) -> dict[str, Any]:
    """Return a fixed type."""
    return {"type": "fixed", "name": name, "size": size, **attributes}


def enum(*symbols: str, name: str = "E", **attributes: Any) -> dict[str, Any]:
    """Return an enum."""
    return {"type": "enum", "name": name, "symbols": list(symbols), **attributes}


def array(items: Any) -> dict[str, Any]:
    """Return an array type."""
    return {"type": "array", "items": items}


def map_(items: Any) -> dict[str, Any]:
    """Return a map type."""
    return {"type": "map", "values": items}


def logical(type_: str, name: str, **attributes: Any) -> dict[str, Any]:
    """Return a logical type."""
    return {"type": type_, "logicalType": name, **attributes}


def decimal(precision: int, scale: int = 0) -> dict[str, Any]:
    """Return a decimal in bytes."""
    return logical("bytes", "decimal", precision=precision, scale=scale)


def big_endian(number: int, size: int) -> bytes:
    """Return a number in bytes."""
    return number.to_bytes(size, "big", signed=True)


def sized(data: bytes) -> Raw:
    """Return bytes of less than 64 behind their length."""
    return Raw(bytes([2 * len(data)]) + data)


INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
EVENT: Final = record(
    ("id", "long"),
    ("user", "string"),
    ("amount", "double"),
    ("page", ["null", "string"]),
    ("tags", array("string")),
    ("attributes", map_("long")),
    name="Event",
)
EVENTS: Final = (
    {"id": 1, "user": "ä", "amount": 0.5, "page": None, "tags": [], "attributes": {}},
    {
        "id": -1,
        "user": "",
        "amount": -1e300,
        "page": "/",
        "tags": ["x", ""],
        "attributes": {"k": 5},
    },
)
POINT: Final = record(("x", "int"), ("y", "int"), name="Point")
NODE: Final = record(("id", "int"), ("next", ["null", "Node"]), name="Node")
LIST: Final = {"id": 1, "next": {"id": 2, "next": {"id": 3, "next": None}}}
DECIMAL9: Final = [0, 1, -1, 10**9 - 1, 1 - 10**9]

PRIMITIVES: Final = (
    Case("boolean", one("boolean"), values(True, False, Raw(b""))),
    Case("boolean 2", one("boolean"), (Raw(b"\x02"),), differs=frozenset({0})),
    Case("int", one("int"), values(0, -1, 64, -65, INT_MAX, -INT_MAX - 1, Raw(b""), Raw(b"\x80"))),
    Case("long", one("long"), values(0, -1, 8191, -8193, LONG_MAX, -LONG_MAX - 1, Raw(b"\xff"))),
    Case("int of six bytes", one("int"), (Raw(b"\x80\x80\x80\x80\x80\x00"),)),
    Case("int of five bytes", one("int"), (Raw(b"\x80\x80\x80\x80\x00"),)),
    Case("int beyond 32 bits", one("int"), (Raw(b"\xff\xff\xff\xff\x1f"),), differs=frozenset({0})),
    Case("long of eleven bytes", one("long"), (Raw(b"\x80" * 10 + b"\x00"),)),
    Case("long of ten bytes", one("long"), (Raw(b"\x80" * 9 + b"\x00"), Raw(b"\xff" * 9 + b"\x01"))),
    Case("long beyond 64 bits", one("long"), (Raw(b"\xff" * 9 + b"\x03"),), differs=frozenset({0})),
    Case("float", one("float"), values(0.0, -0.0, 1.5, float("inf"), float("nan"), Raw(b"\0\0\0"))),
    Case("double", one("double"), values(0.0, -0.0, 0.1, float("-inf"), float("nan"), Raw(b"\0"))),
    Case("bytes", one("bytes"), values(b"", b"\x00\xff", b"x" * 200, Raw(b"\x04a"), Raw(b"\x01"))),
    Case("string", one("string"), values("", "ä€𝄞", "x" * 300, "a\0b", Raw(b"\x04a"), Raw(b"\x01"))),
    Case("bad UTF-8", one("string"), (Raw(b"\x02\xff"), Raw(b"\x06\xed\xa0\x80")), differs=frozenset({0, 1})),
    Case("null beside", record(("n", "null"), ("a", "int")), ({"n": None, "a": 1},), differs=frozenset({0})),
    Case("fixed", one(fixed(3)), values(b"abc", b"\0\0\0", Raw(b"ab"))),
    Case("fixed of none", record(("f", fixed(0)), ("a", "int")), ({"f": b"", "a": 7},)),
    Case("enum", one(enum("A", "B", "C")), values("A", "C", Raw(b"\x06"), Raw(b"\x01"))),
    Case("huge length", one("string"), (Raw(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"), Raw(b"\xfe\xff\xff\xff\x0f"))),
    Case("many fields", EVENT, (*EVENTS, Raw(b""), Raw(b"\x02\x04a"))),
    Case("no fields", record(), ({},)),
)  # fmt: skip

LOGICAL: Final = (
    Case("date", one(logical("int", "date")), values(0, -1, 19000, -719162, 2932896, INT_MAX)),
    Case("date on long", one(logical("long", "date")), values(0, 5)),
    Case("time-millis", one(logical("int", "time-millis")), values(0, 86_399_999)),
    Case("time-micros", one(logical("long", "time-micros")), values(0, 86_399_999_999), differs=frozenset({0, 1})),
    Case("timestamp-millis", one(logical("long", "timestamp-millis")), values(0, -1, 1700000000123, -62135596800000)),
    Case(
        "timestamp-millis overflow",
        one(logical("long", "timestamp-millis")),
        values(
            LONG_MAX,
            LONG_MAX // 1000,
            LONG_MAX // 1000 + 1,
            -(LONG_MAX // 1000),
            -(LONG_MAX // 1000) - 1,
        ),
    ),
    Case("timestamp-micros", one(logical("long", "timestamp-micros")), values(0, -1, 1700000000123456, LONG_MAX)),
    Case("local-timestamp-millis", one(logical("long", "local-timestamp-millis")), values(0, -1, 1700000000123)),
    Case("local-timestamp-micros", one(logical("long", "local-timestamp-micros")), values(0, -1, LONG_MAX)),
    Case("uuid", one(logical("string", "uuid")), values(Raw(b"\x08abcd"))),
    Case("duration", one(fixed(12, logicalType="duration")), values(b"\x01\0\0\0\x02\0\0\0\x03\0\0\0")),
    Case("unknown logical type", one(logical("int", "unheard-of")), values(5)),
    Case("decimal(9,2)", one(decimal(9, 2)), tuple(sized(big_endian(n, 4)) for n in DECIMAL9)),
    Case("decimal in few bytes", one(decimal(9, 2)), tuple(sized(big_endian(n, 1)) for n in (0, 127, -128))),
    Case("decimal in many bytes", one(decimal(9, 2)), (sized(big_endian(-5, 8)), sized(big_endian(7, 20)))),
    Case("decimal beyond its digits", one(decimal(9, 2)), tuple(sized(big_endian(n, 8)) for n in (10**9, -(10**9)))),
    Case("decimal without bytes", one(decimal(9, 2)), (Raw(b"\0"),)),
    Case("decimal beyond 64 bits", one(decimal(9, 2)), (sized(big_endian(2**64 + 5, 9)),), differs=frozenset({0})),
    Case("decimal(18,0)", one(decimal(18)), tuple(sized(big_endian(n, 8)) for n in (10**18 - 1, 1 - 10**18))),
    Case("decimal(18,0) beyond", one(decimal(18)), (sized(big_endian(10**18, 8)),)),
    Case("decimal(38,10)", one(decimal(38, 10)), tuple(sized(big_endian(n, 16)) for n in (0, -1, 10**38 - 1, 1 - 10**38, 2**64, -(2**64)))),
    Case("decimal(38,10) beyond", one(decimal(38, 10)), (sized(big_endian(10**38, 16)), sized(big_endian(10**38, 17)), sized(big_endian(2**130, 18)))),
    Case("decimal in a fixed", one(fixed(4, logicalType="decimal", precision=9, scale=3)), tuple(Raw(big_endian(n, 4)) for n in (0, 1, -1, 999999999))),
    Case("wide decimal in a fixed", one(fixed(20, logicalType="decimal", precision=38)), tuple(Raw(big_endian(n, 20)) for n in (5, -5, 10**38 - 1))),
    Case("decimal that does not fit its fixed", one(fixed(1, logicalType="decimal", precision=9)), (Raw(b"a"),)),
    Case("decimal without precision", one(logical("bytes", "decimal")), (Raw(b"\x04ab"),)),
    Case("decimal of more scale than digits", one(logical("bytes", "decimal", precision=2, scale=3)), (Raw(b"\x04ab"),)),
)  # fmt: skip

NESTED: Final = (
    Case("array", one(array("int")), values([], [1], list(range(200)), Raw(b"\x02"), Raw(b"\x04\x02\x00"))),
    Case("array in blocks", one(array("int")), (Raw(b"\x02\x02\x02\x04\x00"), Raw(b"\x01\x02\x08\x00"), Raw(b"\x03\x04\x02\x04\x02\x06\x00"))),
    Case("array of wrong counts", one(array("int")), (Raw(b"\x08\x02\x00"), Raw(b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"), Raw(b"\x01"))),
    Case("array of longs", one(array("long")), values([LONG_MAX, -1])),
    Case("array of booleans", one(array("boolean")), values([True, False])),
    Case("array of floats", one(array("float")), values([0.5, -1.0])),
    Case("array of doubles", one(array("double")), values([0.5], [])),
    Case("array of strings", one(array("string")), values(["", "ä"], [])),
    Case("array of nullable ints", one(array(["null", "int"])), values([1, None, 2], [None])),
    Case("array of nullable strings", one(array(["string", "null"])), values(["a", None])),
    Case("array of decimals", one(array(decimal(4, 1))), (Raw(b"\x04\x02\x05\x02\xfb\x00"),)),
    Case("array of arrays", one(array(array("int"))), values([[1, 2], [], [3]], [])),
    Case("array of records", one(array(POINT)), values([{"x": 1, "y": 2}, {"x": 3, "y": 4}])),
    Case("array of empty records", one(array(record(name="Empty"))), values([{}, {}, {}])),
    Case("array of maps", one(array(map_("int"))), values([{"a": 1}, {}])),
    Case("map", one(map_("int")), values({}, {"a": 1}, {f"k{n}": n for n in range(50)})),
    Case("map in blocks", one(map_("int")), (Raw(b"\x02\x02a\x02\x02\x02b\x04\x00"), Raw(b"\x01\x06\x02a\x02\x00"))),
    Case("map of nullable strings", one(map_(["null", "string"])), values({"a": None, "b": "c"})),
    Case("map of records", one(map_(POINT)), values({"p": {"x": 1, "y": 2}})),
    Case("map of maps", one(map_(map_("long"))), values({"a": {"b": 1}, "c": {}})),
    Case("map of arrays", one(map_(array("string"))), values({"a": ["x", "y"], "b": []})),
    Case("map with a key twice", one(map_("int")), (Raw(b"\x04\x02a\x02\x02a\x04\x00"),), differs=frozenset({0})),
    Case("struct", one(POINT), values({"x": 1, "y": -1}, Raw(b"\x02"))),
    Case("nullable struct", one(["null", POINT]), values(None, {"x": 1, "y": 2})),
    Case("structs in structs", one(record(("b", record(("c", array(["null", POINT])), name="C")), name="B")), values({"b": {"c": [None, {"x": 1, "y": 2}]}})),
    Case("a named type twice", record(("p", POINT), ("q", "Point")), ({"p": {"x": 1, "y": 2}, "q": {"x": 3, "y": 4}},)),
    Case("namespaces", record(("p", {**POINT, "namespace": "n"}), ("q", "n.Point"), namespace="m"), ({"p": {"x": 1, "y": 2}, "q": {"x": 3, "y": 4}},)),
    *(Case(f"recursion to {depth}", NODE, (LIST, {"id": 1, "next": None}), options={"recursiveFieldMaxDepth": str(depth)}) for depth in (1, 2, 4)),
)  # fmt: skip

UNIONS: Final = (
    Case("nullable first", one(["null", "int"]), values(None, 5, Raw(b"\x04"), Raw(b"\x01"), Raw(b"\x02"))),
    Case("nullable last", one(["int", "null"]), values(None, 5)),
    Case("union of one", one(["string"]), values("a")),
    Case("int and long", one(["int", "long"]), (Raw(b"\x00\x02"), Raw(b"\x02\x02"))),
    Case("long, null and int", one(["long", "null", "int"]), (Raw(b"\x00\x02"), Raw(b"\x02"), Raw(b"\x04\x02"))),
    Case("float and double", one(["float", "double"]), (Raw(b"\x00" + struct.pack("<f", 0.1)), Raw(b"\x02" + struct.pack("<d", 0.1)))),
    Case("members", one(["int", "string"]), (Raw(b"\x00\x02"), Raw(b"\x02\x02a"), Raw(b"\x04\x02"))),
    Case("members and null", one(["null", "int", "string", "boolean"]), (Raw(b"\x00"), Raw(b"\x02\x02"), Raw(b"\x04\x02a"), Raw(b"\x06\x01"))),
    Case("members of numbers", one(["int", "long", "double"]), (Raw(b"\x00\x02"), Raw(b"\x02\x02"), Raw(b"\x04" + struct.pack("<d", 2.5)))),
    Case("members of named types", one([POINT, enum("A", "B"), fixed(1)]), (Raw(b"\x00\x02\x04"), Raw(b"\x02\x02"), Raw(b"\x04z"))),
    Case("members that are nested", one(["null", array("int"), map_("string")]), (Raw(b"\x02\x02\x04\x00"), Raw(b"\x04\x02\x02a\x02b\x00"), Raw(b"\x00"))),
    Case(
        "members by their types",
        one(["int", "string", POINT]),
        (Raw(b"\x00\x02"), Raw(b"\x02\x02a"), Raw(b"\x04\x02\x04")),
        options={"enableStableIdentifiersForUnionType": "true"},
    ),
    Case(
        "members with a prefix",
        one(["null", "int", "string"]),
        (Raw(b"\x02\x02"), Raw(b"\x00")),
        options={
            "enableStableIdentifiersForUnionType": "true",
            "stableIdentifierPrefixForUnionType": "is_",
        },
    ),
    Case("array of members", one(array(["int", "string"])), (Raw(b"\x04\x00\x02\x02\x02a\x00"),)),
    Case("nullable root", ["null", POINT], (Raw(b"\x02\x02\x04"),), differs=frozenset({0})),
    Case("null root", ["null", POINT], (Raw(b"\x00"),), differs=frozenset({0})),
    Case("members at the root", ["int", "string"], (Raw(b"\x00\x02"), Raw(b"\x02\x02a")), differs=frozenset({0, 1})),
)  # fmt: skip

EVOLUTION: Final = (
    Case("int to long", one("int"), values(-5, INT_MAX), one("long")),
    Case("int to float", one("int"), values(16777217, -1), one("float")),
    Case("int to double", one("int"), values(INT_MAX), one("double")),
    Case("long to float", one("long"), values(LONG_MAX, 16777217, -3), one("float")),
    Case("long to double", one("long"), values(LONG_MAX, 2**53 + 1), one("double")),
    Case("float to double", one("float"), values(0.1, float("inf")), one("double")),
    Case("string to bytes", one("string"), values("ä", ""), one("bytes")),
    Case("bytes to string", one("bytes"), values(b"abc", b""), one("string")),
    Case("int to timestamp-millis", one("int"), values(5), one(logical("long", "timestamp-millis"))),
    Case("incompatible types", one("string"), values("a"), one("int")),
    Case("narrowing", one("long"), values(5), one("int")),
    Case("field removed", EVENT, EVENTS, record(("user", "string"), ("page", ["null", "string"]))),
    Case("nested fields removed", record(("n", EVENT), ("a", "int")), ({"n": EVENTS[1], "a": 4},), one("int")),
    Case("fields reordered", POINT, ({"x": 1, "y": 2},), record(("y", "int"), ("x", "long"), name="Point")),
    Case(
        "fields added",
        one("int"),
        values(1),
        record(
            ("a", "int"),
            ("b", "string", "ä"),
            ("c", ["null", "int"], None),
            ("d", array("int"), [1, 2]),
            ("e", map_("string"), {"k": "v"}),
            ("f", POINT, {"x": 5, "y": 6}),
        ),
    ),
    Case(
        "defaults of all types",
        one("int"),
        values(1),
        record(
            ("n", "boolean", True),
            ("f", "float", 1.5),
            ("d", "double", 2),
            ("b", "bytes", "\u00ff"),
            ("x", fixed(2), "ab"),
            ("e", enum("A", "B"), "B"),
            ("l", "long", 2**40),
            ("u", ["string", "int"], "s"),
            ("t", logical("long", "timestamp-millis"), 1000),
        ),
    ),
    Case("field added without a default", one("int"), values(1), record(("a", "int"), ("b", "int"))),
    Case("field renamed", one("int"), values(1), {"type": "record", "name": "R", "fields": [{"name": "b", "type": "int", "aliases": ["a"]}]}),
    Case("record renamed", one("int"), values(1), {**one("long"), "name": "S"}),
    Case("record in a field renamed", one(POINT), values({"x": 1, "y": 2}), one({**POINT, "name": "Q", "aliases": ["Point"]})),
    Case("enum that grew", one(enum("A", "B")), values("A", "B"), one(enum("B", "C", "A"))),
    Case("enum that lost a symbol", one(enum("A", "B")), values("A", "B"), one(enum("A"))),
    Case("enum with a default", one(enum("A", "B")), values("A", "B"), one(enum("A", "Z", default="Z"))),
    Case("enum renamed", one(enum("A")), values("A"), one(enum("A", name="D"))),
    Case("enum renamed with an alias", one(enum("A")), values("A"), one(enum("A", name="D", aliases=["E"]))),
    Case("fixed of another size", one(fixed(2)), values(b"ab"), one(fixed(3))),
    Case("fixed renamed", one(fixed(2)), values(b"ab"), one(fixed(2, name="G"))),
    Case("became nullable", one("int"), values(1, -1), one(["null", "int"])),
    Case("became nullable and long", one("int"), values(1), one(["null", "long"])),
    Case("no longer nullable", one(["null", "int"]), values(None, 5), one("int")),
    Case("became a union", one("string"), values("a"), one(["int", "string"])),
    Case("became a union by promotion", one("int"), values(7), one(["string", "double", "long"])),
    Case("union that grew", one(["int", "string"]), (Raw(b"\x00\x02"), Raw(b"\x02\x02a")), one(["boolean", "string", "int"])),
    Case("union that shrank", one(["int", "string"]), (Raw(b"\x00\x02"), Raw(b"\x02\x02a")), one(["string", "boolean"])),
    Case("union to a type", one(["int", "long", "string"]), (Raw(b"\x00\x02"), Raw(b"\x02\x02"), Raw(b"\x04\x02a")), one("long")),
    Case("no branch", one("boolean"), values(True), one(["int", "string"])),
    Case("array of longer numbers", one(array("int")), values([1, 2], []), one(array("long"))),
    Case("array of incompatible items", one(array("int")), values([], [1]), one(array("string"))),
    Case("map of longer numbers", one(map_("int")), values({"a": 1}), one(map_("double"))),
    Case("records in an array evolved", one(array(POINT)), values([{"x": 1, "y": 2}]), one(array(record(("y", "long"), ("z", "string", "?"), name="Point")))),
    Case("logical type added", one("long"), values(1000), one(logical("long", "timestamp-micros"))),
    Case("logical type removed", one(logical("long", "timestamp-micros")), values(1000), one("long")),
    Case("decimal of more digits", one(decimal(4, 2)), (sized(b"\x05"),), one(decimal(6, 2))),
    Case("another unit", one(logical("long", "timestamp-millis")), values(1000), one(logical("long", "timestamp-micros")), differs=frozenset({0})),
    Case("another scale", one(decimal(4, 2)), (sized(b"\x05"),), one(decimal(4, 1)), differs=frozenset({0})),
    Case(
        "skipped array and map",
        record(("x", array(map_(array("string")))), ("y", map_(array(POINT))), ("a", "int")),
        ({"x": [{"a": ["b"]}, {}], "y": {"k": [{"x": 1, "y": 2}]}, "a": 9},),
        one("int"),
    ),
    Case("skipped blocks with sizes", record(("x", array("string")), ("a", "int")), (Raw(b"\x03\x08\x02a\x02b\x00\x12"), Raw(b"\x03\x40\x02a\x02b\x00\x12")), one("int")),
    Case(
        "skipped unions",
        record(("x", ["int", "string", "null"]), ("y", ["null", POINT]), ("a", "int")),
        (Raw(b"\x02\x02s\x02\x02\x04\x0e"), Raw(b"\x04\x00\x0e"), Raw(b"\x06\x0e")),
        one("int"),
    ),
    Case("skipped recursion", record(("n", NODE), ("a", "int")), ({"n": LIST, "a": 5},), one("int")),
)  # fmt: skip

TRAILING: Final = (
    Case("bytes behind the end", one("int"), (Raw(b"\x02\x00"),), differs=frozenset({0})),
)

CASES: Final = (*PRIMITIVES, *LOGICAL, *NESTED, *UNIONS, *EVOLUTION, *TRAILING)
