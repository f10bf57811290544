"""Batches of rows in any layout, and what has to hold when they are encoded."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from pyspark_kafka.adapters.values.avro.encoder import AvroEncoder
from pyspark_kafka.adapters.values.avro.value_format import VALUE_FORMAT as AVRO
from pyspark_kafka.adapters.values.encoding import row_encoder
from pyspark_kafka.adapters.values.json.decoder import JsonDecoder
from pyspark_kafka.adapters.values.json.encoder import JsonEncoder
from pyspark_kafka.adapters.values.json.value_format import parse_json_options
from pyspark_kafka.adapters.values.protobuf.encoder import ProtobufEncoder
from pyspark_kafka.adapters.values.protobuf.spark_types import ProtobufSettings, message_type
from pyspark_kafka.domain.values.data_types import StructType
from pyspark_kafka.domain.values.errors import FailureReason, UnencodableValueError
from pyspark_kafka.domain.values.value_options import ValueOptions
from pyspark_kafka.ports.values.value_format import DecodedValues, ValueDecoder, ValueEncoder
from tests.unit.adapters.values.json.payloads import payloads_of, plain
from tests.unit.adapters.values.protobuf.oracle import decoder_of
from tests.unit.adapters.values.protobuf.schemas import message_named
from tests.unit.adapters.values.protobuf.wire import message_bytes

from .guarded import little_memory
from .random_columns import NOT_UTF8, TEXTS, RandomColumns, RandomTypes

ROWS: Final = 400
"""The rows of a batch."""

ENCODED: Final = "ENCODED"
REFUSALS: Final = {
    row_encoder.REFUSALS[reason]: name.removeprefix("BAD_")
    for name, reason in vars(row_encoder).items()
    if name.startswith("BAD_")
}
"""The names of the reasons for which rows are refused, by their texts."""

_SCHEMAS: Final = 150
_ALONE: Final = 3
_PREFIX: Final = b"\0\0\0\0\7"
_WITHOUT_MAPS: Final = ("test.Atoms", "test.Optionals", "test.Nested", "test.Choice")
_MESSAGES: Final = (
    *_WITHOUT_MAPS,
    *("test.Repeated", "test.Times", "test.Maps", "test.Wrapped", "test.Tree"),
    *("old.Required", "old.Levels", "old.Texts"),
)
_SYMBOLS: Final = (b"RED", b"GREEN", b"BLUE", b"DARK")
_MESSAGES_MADE: Final = 300
_ANY_ROWS: Final = 0.3
_OTHER_ROW: Final = 0.1
_NULL_FIELD: Final = 0.1
_NAMES: Final = ("id", "a b", "ü", 'q"', "last_one")
_AVRO_NAMES: Final = ("id", "b", "C", "d_4", "last_one")
_DEFAULTS: Final[tuple[Any, ...]] = (None, 0, False, "0.0", b"", [], _SYMBOLS[0])
"""Default values, which are not written for fields without presence."""


@dataclass(frozen=True, slots=True)
class Codec:
    """An encoder of rows of a type, and a decoder of its values."""

    data_type: StructType
    encoder: ValueEncoder
    decoder: ValueDecoder


def try_json(seed: int, number: int) -> Counter[str]:
    """Encode rows of a random type as JSON, and decode them; count the rows by outcome."""
    return _try_columns(_json_codec(number % _SCHEMAS), seed, number)


def try_avro(seed: int, number: int) -> Counter[str]:
    """Encode rows of a random type as Avro, and decode them; count the rows by outcome."""
    return _try_columns(_avro_codec(number % _SCHEMAS), seed, number)


def try_protobuf(seed: int, number: int) -> Counter[str]:
    """Encode rows that were messages, and decode them; count the rows by outcome."""
    dice = np.random.default_rng((seed, number))
    name = _MESSAGES[number % len(_MESSAGES)]
    codec = _protobuf_codec(name)
    if name in _WITHOUT_MAPS and dice.random() < _ANY_ROWS:
        columns = RandomColumns(dice, (*_SYMBOLS, *TEXTS, *NOT_UTF8))
        rows = columns.array(codec.data_type, ROWS)
    else:
        rows = _mixed(dice, _message_rows(name))
    encoded, counted = _encoded(codec, rows, dice)
    for part, values in encoded:
        again = _decode(codec, values)
        assert (again.reasons == 0).all()
        # Defaults without presence are not written, and are null when they are read.
        assert _without_defaults(plain(again.column)) == _without_defaults(plain(part))
        assert codec.encoder.encode(again.column, _PREFIX).equals(values)
    return counted


def _try_columns(codec: Codec, seed: int, number: int) -> Counter[str]:
    dice = np.random.default_rng((seed, number))
    is_hostile = number % 4 == 3
    columns = RandomColumns(dice, (*TEXTS, *NOT_UTF8) if is_hostile else TEXTS)
    rows = columns.array(codec.data_type, ROWS)
    encoded, counted = _encoded(codec, rows, dice)
    for part, values in encoded:
        again = _decode(codec, values)
        if is_hostile:
            assert set(again.reasons.tolist()) <= {FailureReason.NONE, FailureReason.BAD_UTF8}
            counted[FailureReason.BAD_UTF8.name] += int((again.reasons != 0).sum())
            continue
        assert (again.reasons == 0).all()
        expected = part.cast(again.column.type)
        if not expected.equals(again.column):
            # A NaN is not equal to itself.
            assert plain(again.column) == plain(expected)
    return counted


def _encoded(
    codec: Codec, rows: pa.Array[Any], dice: Any
) -> tuple[list[tuple[pa.Array[Any], pa.Array[Any]]], Counter[str]]:
    """Encode all rows that can be, in parts between those which cannot."""
    parts: list[tuple[pa.Array[Any], pa.Array[Any]]] = []
    counted: Counter[str] = Counter()
    while len(rows):
        size = len(rows)
        try:
            values = _encode(codec, rows)
        except UnencodableValueError as error:
            size = error.row
            counted[REFUSALS[error.reason]] += 1
            _check_refusal(codec, rows.slice(size, 1), error)
            values = _encode(codec, rows.slice(0, size))
        part = rows.slice(0, size)
        if size:
            _check_values(codec, part, values, dice)
            parts.append((part, values))
            counted[ENCODED] += size
        rows = rows.slice(size + (size < len(rows)))
    return parts, counted


def _encode(codec: Codec, rows: pa.Array[Any]) -> pa.Array[Any]:
    with little_memory({row_encoder: {"_MIN_BYTES": 1}}):
        values = codec.encoder.encode(rows, _PREFIX)
    values.validate(full=True)
    return values


def _check_refusal(codec: Codec, row: pa.Array[Any], error: UnencodableValueError) -> None:
    """Hold that a row is refused alone as among others."""
    with pytest.raises(UnencodableValueError) as caught:
        codec.encoder.encode(row)
    alone = caught.value
    assert (alone.row, alone.field, alone.reason) == (0, error.field, error.reason)


def _check_values(codec: Codec, rows: pa.Array[Any], values: pa.Array[Any], dice: Any) -> None:
    """Hold that values do not depend on the layout of rows, nor on other rows."""
    order = dice.permutation(len(rows))
    places: pa.Array[Any] = pa.array(order)
    shuffled = codec.encoder.encode(rows.take(places), _PREFIX)
    assert shuffled.equals(values.take(places))
    for row in order[:_ALONE].tolist():
        assert codec.encoder.encode(rows.slice(row, 1), _PREFIX).equals(values.slice(row, 1))
    assert values.is_null().equals(rows.is_null())


def _decode(codec: Codec, values: Any) -> DecodedValues:
    return codec.decoder.decode(
        payloads_of([value and value[len(_PREFIX) :] for value in values.to_pylist()])
    )


@cache
def _json_codec(number: int) -> Codec:
    data_type = RandomTypes(np.random.default_rng(number), _NAMES).struct()
    options = ValueOptions("value", "json")
    encoder = JsonEncoder(options, data_type)
    return Codec(data_type, encoder, JsonDecoder(data_type, parse_json_options(options)))


@cache
def _avro_codec(number: int) -> Codec:
    data_type = RandomTypes(np.random.default_rng(number), _AVRO_NAMES).struct()
    encoder = AvroEncoder("value", None, data_type)
    options = ValueOptions("value", "avro", schema=encoder.schema.text)
    read = AVRO.data_type(options, None)
    return Codec(data_type, encoder, AVRO.decoder(options, None, read))


@cache
def _protobuf_codec(name: str) -> Codec:
    settings, message = ProtobufSettings(max_recursion=3), message_named(name)
    data_type = message_type(message, settings)
    encoder = ProtobufEncoder("value", message, None, data_type)
    return Codec(data_type, encoder, decoder_of(message, data_type, settings))


@cache
def _message_rows(name: str) -> pa.Array[Any]:
    dice = random.Random(name)  # noqa: S311  # nothing is secret
    message = message_named(name)
    messages = [message_bytes(dice, message) for _ in range(_MESSAGES_MADE)]
    found = _protobuf_codec(name).decoder.decode(payloads_of(messages))
    return found.column.filter(pa.array(found.reasons == 0))


def _mixed(dice: Any, rows: Any) -> pa.Array[Any]:
    """Return rows in another order, some of whose fields are null or another row's."""
    before, total = int(dice.integers(9)), ROWS + 20
    chosen = dice.integers(0, len(rows), total)
    fields = []
    for number in range(rows.type.num_fields):
        own = dice.integers(0, len(rows), total)
        places = np.where(dice.random(total) < _OTHER_ROW, own, chosen)
        is_null = dice.random(total) < dice.choice((0, _NULL_FIELD))
        fields.append(rows.field(number).take(pa.array(places, mask=is_null)))
    is_null = pa.array(dice.random(total) < _NULL_FIELD)
    mixed = pa.StructArray.from_arrays(fields, fields=list(rows.type), mask=is_null)
    return mixed.slice(before, ROWS)


def _without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _without_defaults(one) for name, one in value.items()}
        return {name: one for name, one in kept.items() if not _is_default(one)}
    return [*map(_without_defaults, value)] if isinstance(value, list) else value


def _is_default(value: Any) -> bool:
    return any(value == default and type(value) is type(default) for default in _DEFAULTS)
