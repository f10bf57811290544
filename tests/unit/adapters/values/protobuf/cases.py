# ruff: noqa: E501  # a table
"""Messages by hand, each with what is expected of it besides the same result as the oracle's."""

from typing import Final, NamedTuple

from pyspark_kafka.adapters.values.protobuf.spark_types import ProtobufSettings
from pyspark_kafka.domain.values.errors import FailureReason as Reason

from .wire import fixed32, fixed64, group, number, sized, tag, varint, zigzag

PLAIN: Final = ProtobufSettings(max_recursion=3)
ALL: Final = ProtobufSettings(
    emit_defaults=True,
    enums_as_ints=True,
    upcast_unsigned=True,
    unwrap_wrappers=True,
    retain_empty=True,
    max_recursion=2,
)
UNWRAP: Final = ProtobufSettings(unwrap_wrappers=True)
EMIT: Final = ProtobufSettings(emit_defaults=True, max_recursion=2)


class Case(NamedTuple):
    """A message's bytes; ``reason`` is why it is refused, and ``shows`` a field of the result."""

    about: str
    message: str
    data: bytes
    reason: Reason = Reason.NONE
    settings: ProtobufSettings = PLAIN
    shows: tuple[str, object] | None = None


def nested(depth: int, inner: bytes = b"") -> bytes:
    """Return a tree whose branches are ``depth`` deep."""
    for _ in range(depth):
        inner = sized(2, inner)
    return inner


def unknown_groups(depth: int) -> bytes:
    """Return groups in groups."""
    return tag(77, 3) * depth + tag(77, 4) * depth


ATOMS: Final = (
    Case("nothing", "test.Atoms", b"", shows=("i32", None)),
    Case("nothing, with defaults", "test.Atoms", b"", settings=ALL, shows=("u64", 0)),
    Case("an int32", "test.Atoms", number(1, 5), shows=("i32", 5)),
    Case("a negative int32 of ten bytes", "test.Atoms", number(1, -1), shows=("i32", -1)),
    Case("a negative int32 of five bytes", "test.Atoms", number(1, 2**32 - 1), shows=("i32", -1)),
    Case("an int32 of more than 32 bits", "test.Atoms", number(1, 2**32 + 7), shows=("i32", 7)),
    Case("an int32 whose low bits are zero", "test.Atoms", number(1, 2**32), shows=("i32", None)),
    Case("the largest int64", "test.Atoms", number(2, 2**63 - 1), shows=("i64", 2**63 - 1)),
    Case("the smallest int64", "test.Atoms", number(2, -(2**63)), shows=("i64", -(2**63))),
    Case("a large uint32", "test.Atoms", number(3, 2**32 - 1), shows=("u32", -1)),
    Case("a large uint32 as a long", "test.Atoms", number(3, 2**32 - 1), settings=ALL, shows=("u32", 2**32 - 1)),
    Case("a large uint64", "test.Atoms", number(4, 2**64 - 1), shows=("u64", -1)),
    Case("a large uint64 as a decimal", "test.Atoms", number(4, 2**64 - 1), settings=ALL, shows=("u64", 2**64 - 1)),
    Case("a sint32", "test.Atoms", number(5, zigzag(-3)), shows=("s32", -3)),
    Case("the smallest sint32", "test.Atoms", number(5, 2**32 - 1), shows=("s32", -(2**31))),
    Case("a sint32 of more than 32 bits", "test.Atoms", number(5, 2**40 + 1), shows=("s32", -1)),
    Case("the smallest sint64", "test.Atoms", number(6, 2**64 - 1), shows=("s64", -(2**63))),
    Case("a fixed32", "test.Atoms", fixed32(7, 2**32 - 2), shows=("f32", -2)),
    Case("a fixed32 is not upcast", "test.Atoms", fixed32(7, 2**32 - 2), settings=ALL, shows=("f32", -2)),
    Case("a fixed64", "test.Atoms", fixed64(8, 2**64 - 2), shows=("f64", -2)),
    Case("a sfixed32", "test.Atoms", fixed32(9, 5), shows=("sf32", 5)),
    Case("a sfixed64", "test.Atoms", fixed64(10, 2**63), shows=("sf64", -(2**63))),
    Case("a float", "test.Atoms", fixed32(11, 0x3FC00000), shows=("real", "1.5")),
    Case("a float that is minus zero", "test.Atoms", fixed32(11, 1 << 31), shows=("real", "-0.0")),
    Case("a float that is zero", "test.Atoms", fixed32(11, 0), shows=("real", None)),
    Case("a float that is infinite", "test.Atoms", fixed32(11, 0x7F800000), shows=("real", "inf")),
    Case("a double", "test.Atoms", fixed64(12, 0x3FF8000000000000), shows=("wide", "1.5")),
    Case("a double that is not a number", "test.Atoms", fixed64(12, 0x7FF8 << 48), shows=("wide", "nan")),
    Case("a boolean", "test.Atoms", number(13, 1), shows=("truth", True)),
    Case("a boolean that is not 1", "test.Atoms", number(13, 2**63), shows=("truth", True)),
    Case("a false boolean", "test.Atoms", number(13, 0), shows=("truth", None)),
    Case("a string", "test.Atoms", sized(14, "café".encode()), shows=("text", "café")),
    Case("an empty string", "test.Atoms", sized(14), shows=("text", None)),
    Case("an empty string, with defaults", "test.Atoms", sized(14), settings=ALL, shows=("text", "")),
    Case("all of Unicode", "test.Atoms", sized(14, "\0\x7f\x80߿ࠀ퟿￿𐀀\U0010ffff".encode()), shows=("text", "\0\x7f\x80߿ࠀ퟿￿𐀀\U0010ffff")),
    Case("invalid UTF-8", "test.Atoms", sized(14, b"a\xff"), Reason.BAD_UTF8),
    Case("a surrogate", "test.Atoms", sized(14, b"\xed\xa0\x80"), Reason.BAD_UTF8),
    Case("an overlong character", "test.Atoms", sized(14, b"\xc0\x80"), Reason.BAD_UTF8),
    Case("a character cut off", "test.Atoms", sized(14, b"\xf0\x9f\x98"), Reason.BAD_UTF8),
    Case("bytes", "test.Atoms", sized(15, b"\x00\xff"), shows=("raw", b"\x00\xff")),
    Case("an enum", "test.Atoms", number(16, 7), shows=("color", "BLUE")),
    Case("a negative enum", "test.Atoms", number(16, -2), shows=("color", "DARK")),
    Case("an unknown enum", "test.Atoms", number(16, 3), shows=("color", "UNKNOWN_ENUM_VALUE_Color_3")),
    Case("the smallest unknown enum", "test.Atoms", number(16, -(2**31)), shows=("color", "UNKNOWN_ENUM_VALUE_Color_-2147483648")),
    Case("an unknown enum as an int", "test.Atoms", number(16, 3), settings=ALL, shows=("color", 3)),
    Case("the first enum", "test.Atoms", number(16, 0), shows=("color", None)),
    Case("the first enum, with defaults", "test.Atoms", b"", settings=EMIT, shows=("color", "RED")),
    Case("a large field number", "test.Atoms", number(1000, 9), shows=("large", 9)),
    Case("the largest field number", "test.Atoms", sized(2**29 - 1, b"x"), shows=("largest", "x")),
    Case("the last wins", "test.Atoms", number(1, 5) + sized(14, b"a") + number(1, 6) + sized(14, b"bc"), shows=("text", "bc")),
    Case("zero wins, too", "test.Atoms", number(1, 5) + number(1, 0), shows=("i32", None)),
    Case("fields in any order", "test.Atoms", sized(14, b"z") + number(4, 4) + number(1, 1), shows=("i32", 1)),
    Case("unknown fields", "test.Atoms", number(90, 1) + fixed64(91, 1) + fixed32(92, 1) + sized(93, b"x") + group(94, number(1, 5)) + number(1, 2), shows=("i32", 2)),
    Case("unknown groups in groups", "test.Atoms", group(99, group(98, group(98)), sized(5, b"abc")) + number(1, 2), shows=("i32", 2)),
    Case("field number 0 in an unknown group", "test.Atoms", group(99, b"\x00\x05") + number(1, 2), shows=("i32", 2)),
)  # fmt: skip

WIRE: Final = (
    Case("a tag of five bytes", "test.Atoms", varint(8, 5) + b"\x05", shows=("i32", 5)),
    Case("a tag of six bytes", "test.Atoms", varint(8, 6) + b"\x05", Reason.BAD_VARINT),
    Case("a tag of more than 32 bits", "test.Atoms", varint(2**32 + 8) + b"\x05", Reason.BAD_VARINT),
    Case("an overlong varint", "test.Atoms", tag(1, 0) + varint(5, 10), shows=("i32", 5)),
    Case("a varint of eleven bytes", "test.Atoms", tag(1, 0) + varint(5, 11), Reason.BAD_VARINT),
    Case("bits of the tenth byte are ignored", "test.Atoms", tag(2, 0) + b"\xff" * 9 + b"\x7f", shows=("i64", -1)),
    Case("a varint cut off", "test.Atoms", tag(1, 0) + b"\x80", Reason.TRUNCATED),
    Case("a tag cut off", "test.Atoms", number(1, 5) + b"\x80", Reason.TRUNCATED),
    Case("a tag alone", "test.Atoms", tag(1, 0), Reason.TRUNCATED),
    Case("a fixed32 cut off", "test.Atoms", fixed32(7, 1)[:-1], Reason.TRUNCATED),
    Case("a fixed64 cut off", "test.Atoms", fixed64(8, 1)[:-1], Reason.TRUNCATED),
    Case("a string cut off", "test.Atoms", sized(14, b"abc")[:-1], Reason.BAD_LENGTH),
    Case("a length alone", "test.Atoms", tag(14, 2), Reason.TRUNCATED),
    Case("a length of five bytes", "test.Atoms", tag(14, 2) + varint(1, 5) + b"x", shows=("text", "x")),
    Case("a length of six bytes", "test.Atoms", tag(14, 2) + varint(1, 6) + b"x", Reason.BAD_VARINT),
    Case("a negative length", "test.Atoms", tag(14, 2) + varint(-1), Reason.BAD_VARINT),
    Case("a length of more than 31 bits", "test.Atoms", tag(14, 2) + varint(2**31), Reason.BAD_LENGTH),
    Case("an unknown field cut off", "test.Atoms", fixed64(99, 1)[:-2], Reason.TRUNCATED),
    Case("an unknown varint of eleven bytes", "test.Atoms", tag(99, 0) + varint(5, 11), Reason.BAD_VARINT),
    Case("an unknown length that is too large", "test.Atoms", tag(99, 2) + varint(9), Reason.BAD_LENGTH),
    Case("field number 0", "test.Atoms", b"\x00\x05", Reason.MALFORMED),
    Case("field number 0, overlong", "test.Atoms", b"\x80\x00\x05", Reason.MALFORMED),
    Case("wire type 6", "test.Atoms", tag(1, 6), Reason.MALFORMED),
    Case("wire type 7", "test.Atoms", tag(99, 7), Reason.MALFORMED),
    Case("the end of a group that was not begun", "test.Atoms", tag(1, 4), Reason.MALFORMED),
    Case("an unterminated unknown group", "test.Atoms", tag(99, 3) + number(1, 5), Reason.TRUNCATED),
    Case("an unknown group ended by another", "test.Atoms", tag(99, 3) + tag(98, 4), Reason.MALFORMED),
    Case("wire type 6 in an unknown group", "test.Atoms", group(99, tag(1, 6)), Reason.MALFORMED),
    Case("a hundred unknown groups", "test.Atoms", unknown_groups(100)),
    Case("a hundred and one unknown groups", "test.Atoms", unknown_groups(101), Reason.TOO_DEEP),
    Case("a varint where a string is declared", "test.Atoms", number(14, 5), Reason.TYPE_MISMATCH),
    Case("a string where a varint is declared", "test.Atoms", sized(1, b"a"), Reason.TYPE_MISMATCH),
    Case("a fixed32 where a fixed64 is declared", "test.Atoms", fixed32(8, 5), Reason.TYPE_MISMATCH),
    Case("a group where a string is declared", "test.Atoms", group(14), Reason.TYPE_MISMATCH),
    Case("another wire type of a large number", "test.Atoms", sized(1000, b"a"), Reason.TYPE_MISMATCH),
    Case("a bad record after good fields", "test.Atoms", number(1, 5) + sized(14, b"abc") + b"\x07", Reason.MALFORMED),
)  # fmt: skip

PRESENCE: Final = (
    Case("an optional zero", "test.Optionals", number(1, 0), shows=("i32", 0)),
    Case("an optional empty string", "test.Optionals", sized(2), shows=("text", "")),
    Case("an absent optional, with defaults", "test.Optionals", b"", settings=EMIT, shows=("i32", None)),
    Case("optional zeros", "test.Optionals", number(3, 0) + fixed64(4, 0) + number(5, 0) + sized(6), shows=("raw", b"")),
    Case("proto2's defaults", "old.Defaults", b"", shows=("text", "café")),
    Case("proto2's defaults in other types", "old.Defaults", b"", settings=ALL, shows=("u64", 2**64 - 1)),
    Case("a field instead of its default", "old.Defaults", number(1, 0) + sized(2, b"x"), shows=("number", 0)),
    Case("an enum instead of its default", "old.Defaults", number(3, 9), shows=("level", "TOP")),
    Case("a required field", "old.Required", number(1, 0), shows=("id", 0)),
    Case("a required field is missing", "old.Required", b"", Reason.MALFORMED),
    Case("a required field of a message is missing", "old.Required", number(1, 1) + sized(2), Reason.MALFORMED),
    Case("a required field of an element is missing", "old.Required", number(1, 1) + sized(3, number(2, 1)), Reason.MALFORMED),
    Case("a required field in a second part", "old.Required", number(1, 1) + sized(2, number(2, 1)) + sized(2, sized(1, b"n")), shows=("part", {"name": "n", "size": 1})),
    Case("an edition's presence", "modern.Mixed", number(1, 0) + number(2, 0) + number(3, 0), shows=("explicit", 0)),
    Case("an edition's required field", "modern.Mixed", number(1, 0), Reason.MALFORMED),
    Case("an edition's string without a check", "modern.Mixed", number(3, 0) + sized(4, b"a\xff"), shows=("loose", "a�")),
    Case("an edition's string with a check", "modern.Mixed", number(3, 0) + sized(5, b"a\xff"), Reason.BAD_UTF8),
    Case("an edition's delimited message", "modern.Mixed", number(3, 0) + group(6, number(1, 3)), shows=("delimited", {"id": 3})),
    Case("an edition's delimited message with a length", "modern.Mixed", number(3, 0) + sized(6, number(1, 3)), Reason.TYPE_MISMATCH),
    Case("proto2's invalid UTF-8 is replaced", "old.Texts", sized(1, b"\xe2\x82x\xff") + sized(2, b"ok") + sized(2, b"\xff"), shows=("text", "�x�")),
    Case("a surrogate is one replacement", "old.Texts", sized(1, b"\xed\xa0\x80"), shows=("text", "�")),
    Case("invalid UTF-8 in a nested message", "old.Texts", sized(4, sized(4, sized(2, b"\xff"))), shows=("text", None)),
    Case("invalid UTF-8 in a map of proto2", "old.Texts", sized(3, sized(1, b"\xff")), Reason.BAD_UTF8),
)  # fmt: skip

REPEATED: Final = (
    Case("empty lists", "test.Repeated", b"", shows=("i32", [])),
    Case("a packed field", "test.Repeated", sized(1, varint(1), varint(-1), varint(300)), shows=("i32", [1, -1, 300])),
    Case("an unpacked field that is packed in the schema", "test.Repeated", number(1, 1) + number(1, 2), shows=("i32", [1, 2])),
    Case("a packed field that is unpacked in the schema", "test.Repeated", sized(10, varint(1), varint(2)), shows=("unpacked", [1, 2])),
    Case("packed and unpacked in turns", "test.Repeated", sized(1, varint(1)) + number(1, 2) + number(2, 1) + sized(1, varint(3)), shows=("i32", [1, 2, 3])),
    Case("an empty packed field", "test.Repeated", sized(1), shows=("i32", [])),
    Case("zeros are elements", "test.Repeated", sized(1, bytes(3)), shows=("i32", [0, 0, 0])),
    Case("packed sint64", "test.Repeated", sized(2, varint(zigzag(-5))), shows=("s64", [-5])),
    Case("packed fixed32", "test.Repeated", sized(3, b"\1\0\0\0\2\0\0\0"), shows=("f32", [1, 2])),
    Case("a packed fixed32 cut off", "test.Repeated", sized(3, b"\1\0\0\0\2\0\0"), Reason.TRUNCATED),
    Case("packed doubles", "test.Repeated", sized(4, bytes(7), b"\x40", bytes(8)), shows=("wide", ["2.0", "0.0"])),
    Case("packed floats", "test.Repeated", sized(12, b"\0\0\x80\x3f"), shows=("real", ["1.0"])),
    Case("packed booleans", "test.Repeated", sized(5, b"\0\1\x80\1"), shows=("truth", [False, True, True])),
    Case("a packed varint beyond the length", "test.Repeated", tag(1, 2) + b"\1\x80" + b"\1", Reason.TRUNCATED),
    Case("strings, an empty one too", "test.Repeated", sized(6, b"a") + sized(6) + sized(6, b"b"), shows=("text", ["a", "", "b"])),
    Case("invalid UTF-8 in a list", "test.Repeated", sized(6, b"a") + sized(6, b"\xff"), Reason.BAD_UTF8),
    Case("a list of bytes", "test.Repeated", sized(7, b"\xff") + sized(7), shows=("raw", [b"\xff", b""])),
    Case("enums, unknown ones too", "test.Repeated", sized(8, varint(0), varint(7), varint(9)), shows=("color", ["RED", "BLUE", "UNKNOWN_ENUM_VALUE_Color_9"])),
    Case("enums as ints", "test.Repeated", sized(8, varint(0), varint(9)), settings=ALL, shows=("color", [0, 9])),
    Case("packed uint64 as decimals", "test.Repeated", sized(11, varint(2**64 - 1)), settings=ALL, shows=("u64", [2**64 - 1])),
    Case("a string where a repeated number is declared as a fixed64", "test.Repeated", fixed64(1, 5), Reason.TYPE_MISMATCH),
    Case("more elements than a batch has room for", "test.Repeated", sized(1, b"\1" * 3_000) + sized(6, b"x") * 500),
)  # fmt: skip

MESSAGES: Final = (
    Case("an absent message", "test.Nested", number(4, 1), shows=("inner", None)),
    Case("an empty message", "test.Nested", sized(2), shows=("inner", {"id": None, "text": None, "numbers": [], "innermost": None})),
    Case("messages", "test.Nested", sized(1, b"n") + sized(2, number(1, 7), sized(4, sized(1, b"w"))), shows=("name", "n")),
    Case("elements that are messages", "test.Nested", sized(3, number(1, 1)) + sized(3) + sized(3, sized(3, b"\1\2")), shows=("name", None)),
    Case("a message in two parts", "test.Nested", sized(2, number(1, 1), sized(2, b"a"), sized(3, b"\1")) + sized(2, sized(2, b"b"), sized(3, b"\2")), shows=("inner", {"id": 1, "text": "b", "numbers": [1, 2], "innermost": None})),
    Case("a message in parts, with others between", "test.Nested", sized(2, sized(4, sized(1, b"a"))) + sized(3, sized(4, sized(1, b"x"))) + sized(2, sized(4, sized(1, b"b"))) + number(4, 1), shows=("inner", {"id": None, "text": None, "numbers": [], "innermost": {"words": ["a", "b"], "id": None}})),
    Case("an element is not merged with the next", "test.Nested", sized(3, number(1, 1)) + sized(3, sized(2, b"x")), shows=("last", None)),
    Case("another wire type in a nested message", "test.Nested", sized(2, sized(1, b"a"), sized(2, b"b")), shows=("inner", {"id": None, "text": "b", "numbers": [], "innermost": None})),
    Case("a nested length beyond its parent", "test.Nested", tag(2, 2) + b"\2" + tag(2, 2) + b"\5" + b"abcde", Reason.BAD_LENGTH),
    Case("a nested varint beyond its parent", "test.Nested", tag(2, 2) + b"\2" + tag(1, 0) + b"\x80" + b"\1", Reason.TRUNCATED),
    Case("the end of a group in a message", "test.Nested", sized(2, tag(5, 4)), Reason.MALFORMED),
    Case("a recursive message", "test.Tree", number(1, 1) + sized(2, number(1, 2), sized(2, number(1, 3), sized(2, number(1, 4)))), shows=("id", 1)),
    Case("a hundred messages", "test.Tree", nested(100)),
    Case("a message whose fields are empty messages", "test.HasEmpty", number(2, 5), shows=("id", 5)),
    Case("an empty message that is kept", "test.HasEmpty", sized(1) + sized(3) * 2, settings=ALL, shows=("more", [{"__dummy_field_in_empty_struct": None}] * 2)),
    Case("a group", "old.Groups", group(1, number(2, 5), sized(3, b"x")), shows=("one", {"id": 5, "text": "x"})),
    Case("a group in parts", "old.Groups", group(1, number(2, 5)) + group(1, sized(3, b"x")), shows=("one", {"id": 5, "text": "x"})),
    Case("groups in messages in groups", "old.Groups", group(4, number(5, 1), sized(6, group(4, number(5, 2)))) + group(4), shows=("last", None)),
    Case("an unterminated group", "old.Groups", tag(1, 3) + number(2, 5), Reason.TRUNCATED),
    Case("a group ended by another", "old.Groups", tag(1, 3) + tag(4, 4), Reason.MALFORMED),
    Case("a group ended by its message", "old.Groups", group(4, sized(6, tag(4, 3))), Reason.TRUNCATED),
    Case("a group with a length", "old.Groups", sized(1, number(2, 5)), Reason.TYPE_MISMATCH),
    Case("an unknown group in a group", "old.Groups", group(1, group(88, number(2, 9)), number(2, 5)), shows=("one", {"id": 5, "text": None})),
)  # fmt: skip

MAPS: Final = (
    Case("empty maps", "test.Maps", b"", shows=("counts", {})),
    Case("a map", "test.Maps", sized(1, sized(1, b"a"), number(2, 1)) + sized(1, sized(1, b"b"), number(2, 2)), shows=("counts", {"a": 1, "b": 2})),
    Case("the last of equal keys wins", "test.Maps", sized(1, sized(1, b"a"), number(2, 1)) + sized(1, sized(1, b"b"), number(2, 2)) + sized(1, sized(1, b"a"), number(2, 3)), shows=("counts", {"a": 3, "b": 2})),
    Case("many equal keys", "test.Maps", b"".join(sized(2, number(1, n % 40), sized(2, b"%d" % n)) for n in range(90)), shows=("counts", {})),
    Case("a key that is zero by default", "test.Maps", sized(2, sized(2, b"x")) + sized(2, number(1, 0), sized(2, b"y")), shows=("names", {0: "y"})),
    Case("an entry without a value", "test.Maps", sized(1, sized(1, b"a")), shows=("counts", {"a": 0})),
    Case("an empty entry", "test.Maps", sized(1) + sized(3), shows=("truths", {False: "0.0"})),
    Case("an entry in reverse", "test.Maps", sized(1, number(2, 1), sized(1, b"a")), shows=("counts", {"a": 1})),
    Case("an entry with two keys", "test.Maps", sized(1, sized(1, b"a"), sized(1, b"b"), number(2, 1)), shows=("counts", {"b": 1})),
    Case("an entry with unknown fields", "test.Maps", sized(1, sized(1, b"a"), number(3, 9), number(2, 1)), shows=("counts", {"a": 1})),
    Case("another wire type in an entry", "test.Maps", sized(1, sized(1, b"a"), sized(2, b"b")), shows=("counts", {"a": 0})),
    Case("messages as values", "test.Maps", sized(4, number(1, zigzag(-7)), sized(2, number(1, 1))), shows=("inners", {-7: {"id": 1, "text": None, "numbers": [], "innermost": None}})),
    Case("a value in two parts", "test.Maps", sized(4, sized(2, number(1, 1)), sized(2, sized(3, b"\5"))), shows=("inners", {0: {"id": 1, "text": None, "numbers": [5], "innermost": None}})),
    Case("an absent message as a value", "test.Maps", sized(4, number(1, 2)), shows=("inners", {1: {"id": None, "text": None, "numbers": [], "innermost": None}})),
    Case("enums as values", "test.Maps", sized(5, sized(1, b"a"), number(2, 1)) + sized(5), shows=("colors", {"a": "GREEN", "": "RED"})),
    Case("fixed64 as keys", "test.Maps", sized(6, fixed64(1, 2**64 - 1), sized(2, b"\xff")), shows=("raws", {-1: b"\xff"})),
    Case("times as values", "test.Maps", sized(7, sized(1, b"a")) + sized(7, sized(1, b"b"), sized(2, number(1, 1))), shows=("times", {"a": 0, "b": 1_000_000})),
    Case("invalid UTF-8 in a key", "test.Maps", sized(1, sized(1, b"\xff")), Reason.BAD_UTF8),
    Case("an entry cut off", "test.Maps", sized(1, sized(1, b"abc")[:-1]), Reason.BAD_LENGTH),
    Case("a varint where a map is declared", "test.Maps", number(1, 1), Reason.TYPE_MISMATCH),
    Case("a map in a recursive message", "test.Tree", sized(4, number(1, 5), sized(2, number(1, 6))), shows=("id", None)),
)  # fmt: skip

ENUMS: Final = (
    Case("a closed enum", "old.Levels", number(1, 5), shows=("level", "HIGH")),
    Case("a closed enum as an int", "old.Levels", number(1, 5), settings=ALL, shows=("level", 5)),
    Case("an unknown number of a closed enum", "old.Levels", number(1, 6), Reason.BAD_ENUM),
    Case("an unknown number in a list", "old.Levels", number(2, 1) + number(2, 6), Reason.BAD_ENUM),
    Case("an unknown number in a packed list", "old.Levels", sized(3, b"\1\6"), Reason.BAD_ENUM),
    Case("an unknown number in a map", "old.Levels", sized(4, sized(1, b"a"), number(2, 6)), Reason.BAD_ENUM),
    Case("an unknown number below", "old.Levels", sized(5, number(1, 5), number(1, 6), number(2, 1), number(2, 6), sized(2, b"\5\6\x09")), shows=("inner", {"level": "HIGH", "levels": ["LOW", "HIGH", "TOP"], "by_name": {}, "first": None, "second": None})),
    Case("an unknown number in a map below", "old.Levels", sized(5, sized(3, sized(1, b"a"), number(2, 6)), sized(3, sized(1, b"b"), number(2, 1))), shows=("inner", {"level": None, "levels": [], "by_name": {"b": "FIRST"}, "first": None, "second": None})),
    Case("an unknown number does not set a oneof", "old.Levels", sized(5, sized(5, b"x"), number(4, 6)), shows=("inner", {"level": None, "levels": [], "by_name": {}, "first": None, "second": "x"})),
)  # fmt: skip

ONEOFS: Final = (
    Case("a oneof", "test.Choice", number(2, 0), shows=("number", 0)),
    Case("the last of a oneof", "test.Choice", number(2, 5) + sized(3, b"x"), shows=("number", None)),
    Case("the last of a oneof is a message", "test.Choice", sized(3, b"x") + sized(4), shows=("text", None)),
    Case("a message is removed", "test.Choice", sized(4, number(1, 1), sized(3, b"\1"), sized(4, sized(1, b"w"))) + number(2, 5), shows=("inner", None)),
    Case("a message is removed and given again", "test.Choice", sized(4, number(1, 1), sized(3, b"\1")) + number(2, 5) + sized(4, sized(3, b"\2")), shows=("inner", {"id": None, "text": None, "numbers": [2], "innermost": None})),
    Case("a message of a oneof in two parts", "test.Choice", sized(4, number(1, 1)) + sized(4, sized(3, b"\2")), shows=("inner", {"id": 1, "text": None, "numbers": [2], "innermost": None})),
    Case("an enum of a oneof", "test.Choice", number(2, 5) + number(5, 0), shows=("color", "RED")),
    Case("a time of a oneof is removed", "test.Choice", sized(6, number(1, 5)) + sized(3, b"x") + sized(6, number(2, 2_000)), shows=("time", 2)),
    Case("fields around a oneof stay", "test.Choice", number(1, 1) + number(2, 5) + number(7, 7) + sized(3, b"x"), shows=("after", 7)),
)  # fmt: skip

TIMES: Final = (
    Case("a timestamp", "test.Times", sized(1, number(1, 1_700_000_000), number(2, 123_456_789)), shows=("time", 1_700_000_000_123_456)),
    Case("an empty timestamp", "test.Times", sized(1), shows=("time", 0)),
    Case("an absent timestamp, with defaults", "test.Times", b"", settings=ALL, shows=("time", None)),
    Case("a timestamp before 1970", "test.Times", sized(1, number(1, -1), number(2, 999_999_999)), shows=("time", -1)),
    Case("a timestamp in two parts", "test.Times", sized(1, number(1, 5)) + sized(1, number(2, 7_000)), shows=("time", 5_000_007)),
    Case("nanoseconds are truncated towards zero", "test.Times", sized(2, number(1, -1), number(2, -1_999)), shows=("span", -1_000_001)),
    Case("timestamps", "test.Times", sized(3, number(1, 5)) + sized(3) + sized(3, number(2, 1_000)), shows=("times", [5_000_000, 0, 1])),
    Case("durations", "test.Times", sized(4, number(1, 5), number(1, 6)) + sized(4), shows=("spans", [6_000_000, 0])),
    Case("a timestamp that overflows", "test.Times", sized(1, number(1, 2**62)), Reason.OUT_OF_RANGE),
    Case("a duration that underflows", "test.Times", sized(2, number(1, -(2**62))), Reason.OUT_OF_RANGE),
    Case("another wire type in a timestamp", "test.Times", sized(1, sized(1, b"a"), number(2, 1_000)), shows=("time", 1)),
)  # fmt: skip

WRAPPERS: Final = (
    Case("wrappers are messages", "test.Wrapped", sized(1, number(1, 5)), shows=("i32", {"value": 5})),
    Case("a wrapper is unwrapped", "test.Wrapped", sized(1, number(1, 5)), settings=UNWRAP, shows=("i32", 5)),
    Case("a wrapped zero", "test.Wrapped", sized(1, number(1, 0)), settings=UNWRAP, shows=("i32", None)),
    Case("a wrapped zero, with defaults", "test.Wrapped", sized(1), settings=ALL, shows=("i32", 0)),
    Case("an absent wrapper, with defaults", "test.Wrapped", b"", settings=ALL, shows=("i32", None)),
    Case("all wrappers", "test.Wrapped", sized(2, number(1, 2)) + sized(3, number(1, 2**32 - 1)) + sized(4, number(1, 2**64 - 1)) + sized(5, fixed32(1, 0x3FC00000)) + sized(6, fixed64(1, 1)) + sized(7, number(1, 1)) + sized(8, sized(1, b"x")) + sized(9, sized(1, b"\xff")), settings=ALL, shows=("u64", 2**64 - 1)),
    Case("a wrapper in two parts", "test.Wrapped", sized(8, sized(1, b"ab")) + sized(8, sized(1, b"c")), settings=UNWRAP, shows=("text", "c")),
    Case("elements that are wrappers", "test.Wrapped", sized(10, sized(1, b"a")) + sized(10) + sized(10, sized(1, b"c")), settings=UNWRAP, shows=("texts", ["a", None, "c"])),
    Case("values of maps that are wrappers", "test.Wrapped", sized(11, number(1, 5), sized(2, number(1, 6))) + sized(11, number(1, 7)), settings=UNWRAP, shows=("numbers", {5: 6, 7: None})),
    Case("invalid UTF-8 in a wrapper", "test.Wrapped", sized(8, sized(1, b"\xff")), Reason.BAD_UTF8, UNWRAP),
)  # fmt: skip

CASES: Final = (
    *ATOMS, *WIRE, *PRESENCE, *REPEATED, *MESSAGES, *MAPS, *ENUMS, *ONEOFS, *TIMES, *WRAPPERS,
)  # fmt: skip
