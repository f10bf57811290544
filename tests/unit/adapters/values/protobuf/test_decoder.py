"""The decoder's handling of batches, apart from those in the corpus."""

from typing import Final

import pytest

from pyspark_kafka.adapters.values.columns import column_set
from pyspark_kafka.adapters.values.protobuf import decoder as decoder_module
from pyspark_kafka.adapters.values.protobuf.invalid_descriptor import InvalidDescriptorError
from pyspark_kafka.adapters.values.protobuf.spark_types import ProtobufSettings, message_type
from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.data_types import ArrayType, DataType, StructField, StructType
from pyspark_kafka.domain.values.errors import DecodedTooLargeError
from pyspark_kafka.domain.values.errors import FailureReason as Reason

from ..json.payloads import payloads_of
from .oracle import decoded, decoder_of, expected
from .schemas import message_in, message_named
from .wire import group, number, sized, tag, varint

PLAIN: Final = ProtobufSettings(max_recursion=3)


def struct(**fields: DataType) -> StructType:
    return StructType(tuple(StructField(name, one) for name, one in fields.items()))


def test_a_failure_names_the_field():
    message = message_named("test.Nested")
    decoder = decoder_of(message, message_type(message, PLAIN))
    bad_text = sized(2, sized(4, sized(1, b"\xff")))
    result = decoder.decode(payloads_of([bad_text, number(1, 5), b"\x80", sized(1, b"ok")]))
    names = [decoder.field_names[field] if field >= 0 else None for field in result.fields]
    assert names == ["inner.innermost.words.element", "name", None, None]
    assert result.reasons.tolist() == [Reason.BAD_UTF8, Reason.TYPE_MISMATCH, Reason.TRUNCATED, 0]


def test_some_fields_in_another_order():
    inner = struct(text=types.STRING)
    wanted = struct(last=types.INTEGER, INNERS=ArrayType(inner), inner=inner)
    decoder = decoder_of(message_named("test.Nested"), wanted)
    data = sized(1, b"\xff") + sized(2, number(1, 1), sized(2, b"a"), sized(4, b"\x07"))
    rows = decoded(decoder, [data + sized(3, sized(2, b"b")) + number(4, 9)])
    assert rows == [{"last": 9, "INNERS": [{"text": "b"}], "inner": {"text": "a"}}]


def test_members_of_a_oneof_that_are_not_wanted():
    decoder = decoder_of(message_named("test.Choice"), struct(number=types.INTEGER))
    five, text = number(2, 5), sized(3, b"x")
    rows = decoded(decoder, [five + text, text + five, five + number(3, 1), five + tag(3, 2)])
    assert rows == [{"number": None}, {"number": 5}, {"number": 5}, Reason.TRUNCATED]


def test_required_fields_that_are_not_wanted():
    wanted = struct(part=struct(size=types.INTEGER))
    decoder = decoder_of(message_named("old.Required"), wanted)
    part = sized(2, sized(1, b"n"), number(2, 5))
    rows = decoded(decoder, [part + number(1, 1), part, number(1, 1) + sized(2), number(1, 1)])
    assert rows == [{"part": {"size": 5}}, Reason.MALFORMED, Reason.MALFORMED, {"part": None}]


@pytest.mark.parametrize(("name", "make"), [("test.Tree", sized), ("old.Groups", group)])
def test_a_hundred_messages_in_messages_are_decoded_and_one_more_is_not(name, make):
    assert callable(make)
    trees = name == "test.Tree"
    wanted = struct(id=types.INTEGER) if trees else struct(last=types.INTEGER)
    leaf = [wanted]
    for _ in range(101 if trees else 51):
        inner = (
            struct(left=leaf[0])
            if trees
            else struct(many=ArrayType(struct(inner=ArrayType(leaf[0]))))
        )
        leaf = [inner]
    decoder = decoder_of(message_named(name), leaf[0])
    deep = [b"", b""]
    for place, depth in enumerate((100, 101)):
        for level in range(depth):
            field = 2 if trees else (4, 6)[(depth - level - 1) % 2]
            deep[place] = group(4, deep[place]) if field == 4 else sized(field, deep[place])
    first, second = decoded(decoder, deep)
    assert isinstance(first, dict)
    assert second == Reason.TOO_DEEP


def test_a_batch_may_have_more_elements_and_texts_than_its_columns_had_room_for():
    message = message_named("test.Repeated")
    wanted = message_type(message, PLAIN)
    decoder = decoder_of(message, wanted)
    atoms = sized(9, number(1, 3), sized(14, b"t" * 50)) * 300
    large = sized(1, varint(7) * 20_000) + sized(8, varint(9) * 3_000) + atoms
    values = [large, b"\x07", number(10, 1), large]
    rows = decoded(decoder, values)
    right = expected(message, large, wanted, PLAIN)
    assert rows == [right, Reason.MALFORMED, expected(message, values[2], wanted, PLAIN), right]


def test_a_record_that_is_too_large_when_decoded():
    fields = "".join(f"int32 f{n} = {n};" for n in range(1, 201))
    text = f'syntax = "proto3"; message M {{ repeated N n = 1; }} message N {{ {fields} }}'
    message = message_in(text)
    decoder = decoder_of(message, message_type(message, PLAIN))
    first, second, third = decoded(decoder, [sized(1) * 9_000, sized(1), sized(1) * 6_000])
    assert first == Reason.TOO_LARGE
    assert [len(second["n"]), len(third["n"])] == [1, 6_000]


def test_a_value_that_arrow_cannot_address_is_too_large(monkeypatch):
    monkeypatch.setattr(column_set, "MAX_SIZE", 5_000)
    message = message_in('syntax = "proto3"; message M { string a = 1; }')
    decoder = decoder_of(message, message_type(message, PLAIN))
    small, large = sized(1, b"x"), sized(1, b"y" * 6_000)
    with pytest.raises(DecodedTooLargeError):
        decoded(decoder, [small, large])
    assert decoded(decoder, [large, small]) == [Reason.TOO_LARGE, {"a": "x"}]


def test_a_batch_that_is_too_large_when_decoded(monkeypatch):
    monkeypatch.setattr(decoder_module, "MAX_CELLS", 1_000)
    message = message_named("test.Repeated")
    decoder = decoder_of(message, message_type(message, PLAIN))
    value = sized(1, b"\1" * 600)
    assert len(decoded(decoder, [value])[0]["i32"]) == 600
    with pytest.raises(DecodedTooLargeError, match="2 records"):
        decoded(decoder, [value, value])


def test_both_repairs_at_once():
    message = message_named("old.Texts")
    decoder = decoder_of(message, message_type(message, PLAIN))
    pair = sized(3, sized(1, b"k"), sized(2, b"a")), sized(3, sized(1, b"k"), sized(2, b"b"))
    values = [sized(4, *pair, sized(2, b"\xff")), b"", None, sized(1, b"\xc3")]
    rows = decoded(decoder, values)
    assert rows[0]["inner"] == {"text": None, "texts": ["�"], "pairs": {"k": "b"}, "inner": None}
    assert rows[1:] == [
        {"text": None, "texts": [], "pairs": {}, "inner": None},
        None,
        {"text": "�", "texts": [], "pairs": {}, "inner": None},
    ]
    assert decoded(decoder, [b""]) == [rows[1]], "nothing of the batch before is left"


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (struct(nothing=types.INTEGER), "has no field 'nothing'"),
        (struct(i32=types.LONG), "the field 'i32' is int, and the query has bigint"),
        (struct(text=ArrayType(types.STRING)), "the field 'text' is string, and the query has"),
        (struct(i32=types.INTEGER, I32=types.INTEGER), "the field 'I32' twice"),
    ],
)
def test_types_that_a_message_does_not_have(wanted, problem):
    with pytest.raises(InvalidDescriptorError, match=problem):
        decoder_of(message_named("test.Atoms"), wanted)


@pytest.mark.parametrize(
    ("name", "wanted", "problem"),
    [
        ("test.Nested", struct(inner=types.STRING), "'inner' is a message"),
        ("test.Nested", struct(inner=struct(text=types.BINARY)), "'inner.text' is string"),
        ("test.Nested", struct(inners=struct(text=types.STRING)), "'inners' is an array"),
        ("test.Maps", struct(counts=struct(key=types.STRING)), "'counts' is a map"),
        ("test.Times", struct(time=types.LONG), "'time' is timestamp"),
    ],
)
def test_types_that_fields_do_not_have(name, wanted, problem):
    with pytest.raises(InvalidDescriptorError, match=problem):
        decoder_of(message_named(name), wanted)
