"""Random rows of random types, held against Spark's functions, in both directions."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.functions import col, from_json, to_json

from pyspark_kafka.adapters.values.avro.encoder import AvroEncoder
from pyspark_kafka.adapters.values.json.decoder import JsonDecoder
from pyspark_kafka.adapters.values.json.encoder import JsonEncoder
from pyspark_kafka.adapters.values.json.value_format import parse_json_options
from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.data_types import DataType, StructField, StructType
from pyspark_kafka.domain.values.value_options import ValueOptions
from pyspark_kafka.ports.values.value_types import arrow_type
from tests.unit.adapters.values.avro.decoding import decoder_of
from tests.unit.adapters.values.json.payloads import payloads_of

ROWS: Final = 2_000
"""Rows of each type."""

_NUMBERS: Final = {types.BYTE: 8, types.SHORT: 16, types.INTEGER: 32, types.LONG: 64}
_ATOMS: Final = (
    *_NUMBERS,
    *(types.BOOLEAN, types.DOUBLE, types.STRING, types.BINARY, types.DATE, types.TIMESTAMP),
    types.TIMESTAMP_NTZ,
)
_TEXTS: Final = ("", "a", "é😀", '"\\\n', "1", "-1.5", "true", "2020-01-02", "x" * 100)
_WIDER: Final = {"int": ("int", "long"), "long": ("long", "double")}
_MORE: Final = {"name": "more", "type": ["null", "long"], "default": None}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class SparkValues:
    """Each round has a type, and rows that both write; then both read them, as another type."""

    def __init__(self, spark: SparkSession, say: Callable[[str], None], rows: int = ROWS) -> None:
        """Take a session whose time zone is UTC, what reports differences, and how many rows."""
        self._spark = spark
        self._say = say
        self._rows = rows
        self.counts: Counter[str] = Counter()

    def run_round(self, seed: int) -> bool:
        """Return whether all values were equal."""
        dice = Random(seed)  # noqa: S311  # nothing is secret
        kind = _struct(dice, 3)
        rows = [_value(dice, kind) for _ in range(self._rows)]
        column: Any = pa.array(rows, arrow_type(kind))
        avro = AvroEncoder("value", None, kind)
        frame = self._spark.createDataFrame(pa.table({"value": column}), f"value {kind}")
        # Not null: otherwise its type is a union, whose branch is in front of each value.
        not_null = frame.where("value is not null")
        written = not_null.select(
            to_json("value").cast("binary").alias("json"),
            to_avro("value", avro.schema.text).alias("avro"),
        ).toArrow()
        column = column.filter(column.is_valid())
        as_json = JsonEncoder(ValueOptions("value", "json"), kind).encode(column)
        as_avro = avro.encode(column)
        rows = column.to_pylist()
        kept = [
            self._same(f"to_json, seed {seed}: {kind}", as_json, written.column("json"), rows),
            self._same(f"to_avro, seed {seed}: {kind}", as_avro, written.column("avro"), rows),
            self._read_json(dice, seed, kind, as_json),
            self._read_avro(seed, avro.schema.text, avro.schema.text, as_avro),
            self._read_avro(seed, avro.schema.text, _evolved_avro(dice, avro.schema.text), as_avro),
        ]
        if seed % 10 == 0:
            self._say(f"seed {seed}: {dict(self.counts)}")
        return all(kept)

    def _read_json(self, dice: Random, seed: int, kind: StructType, texts: Any) -> bool:
        wanted = _evolved(dice, kind)
        frame = self._spark.createDataFrame(pa.table({"value": texts}))
        read = frame.select(from_json(col("value").cast("string"), str(wanted))).toArrow().column(0)
        decoder = JsonDecoder(wanted, parse_json_options(ValueOptions("value", "json")))
        found = decoder.decode(payloads_of(texts.to_pylist())).column
        return self._same(f"from_json, seed {seed}: {wanted}", found, read, texts.to_pylist())

    def _read_avro(self, seed: int, writer: str, reader: str, datums: Any) -> bool:
        settings = {"avroSchema": reader}
        frame = self._spark.createDataFrame(pa.table({"value": datums}))
        read = frame.select(from_avro("value", writer, settings)).toArrow().column(0)
        decoder = decoder_of(json.loads(writer), settings=settings)
        found = decoder.decode(payloads_of(datums.to_pylist())).column
        what = f"from_avro, seed {seed}: {writer} as {reader}"
        return self._same(what, found, read, datums.to_pylist())

    def _same(self, what: str, found: Any, wanted: Any, values: Sequence[Any]) -> bool:
        ours, theirs = found.to_pylist(), wanted.to_pylist()
        self.counts[what.partition(",")[0]] += len(ours)
        for one, right, value in zip(ours, theirs, values, strict=True):
            # Equal texts are equal values, also those that are not a number.
            if repr(one) != repr(right):
                self._say(f"{what}\n value {value!r}\n found {one!r}\n wanted {right!r}")
                return False
        return True


def _struct(dice: Random, depth: int) -> StructType:
    count = dice.randint(1, 5)
    return StructType(
        tuple(StructField(f"f{number}", _type(dice, depth - 1)) for number in range(count))
    )


def _type(dice: Random, depth: int) -> DataType:
    kinds = ["atom"] * 5 + ["decimal"] + (["array", "map", "struct"] if depth > 0 else [])
    match dice.choice(kinds):
        case "decimal":
            precision = dice.randint(1, 38)
            return types.DecimalType(precision, dice.randint(0, precision))
        case "array":
            return types.ArrayType(_type(dice, depth - 1))
        case "map":
            return types.MapType(types.STRING, _type(dice, depth - 1))
        case "struct":
            return _struct(dice, depth)
    return dice.choice(_ATOMS)


def _evolved(dice: Random, kind: StructType) -> StructType:
    """Return a struct with fewer and more fields, some of them of other types."""
    fields = [
        StructField(field.name, _evolved_type(dice, field.type))
        for field in kind.fields
        if dice.random() < 0.9
    ]
    if dice.random() < 0.3:
        fields.append(StructField("more", _type(dice, 1)))
    return StructType(tuple(fields)) if fields else kind


def _evolved_type(dice: Random, kind: DataType) -> DataType:
    if dice.random() < 0.1:
        return dice.choice((types.STRING, types.LONG, types.DOUBLE, types.DecimalType(20, 4)))
    if isinstance(kind, StructType):
        return _evolved(dice, kind)
    if isinstance(kind, types.ArrayType):
        return types.ArrayType(_evolved_type(dice, kind.element))
    return kind


def _evolved_avro(dice: Random, schema: str) -> str:
    """Return a schema whose records have fewer, more and reordered fields, and wider numbers."""

    def evolved(part: Any) -> Any:
        if isinstance(part, list):
            return [evolved(branch) for branch in part]
        if isinstance(part, str):
            return dice.choice(_WIDER.get(part, (part,)))
        if "fields" in part:
            fields = [{**one, "type": evolved(one["type"])} for one in part["fields"]]
            kept = dice.sample(fields, dice.randint(max(1, len(fields) - 1), len(fields)))
            return {**part, "fields": kept + dice.choice(([], [_MORE]))}
        inner = {key: evolved(part[key]) for key in ("items", "values") if key in part}
        return {**part, **inner}

    return json.dumps(evolved(json.loads(schema)))


def _value(dice: Random, kind: DataType) -> Any:  # one for each type
    if dice.random() < 0.1:
        return None
    match kind:
        case StructType(fields):
            return {field.name: _value(dice, field.type) for field in fields}
        case types.ArrayType(element):
            return [_value(dice, element) for _ in range(dice.choice((0, 1, 3)))]
        case types.MapType(_, value):
            # Spark writes the entries of Avro in the order of Java's hash table.
            return [(dice.choice(_TEXTS), _value(dice, value)) for _ in range(dice.randrange(2))]
        case types.DecimalType(precision, scale):
            number = dice.randint(-(10 ** min(precision, 18)) + 1, 10 ** min(precision, 18) - 1)
            return Decimal(number).scaleb(-scale)
    return _atom(dice, kind)


def _atom(dice: Random, kind: DataType) -> Any:
    if isinstance(kind, types.AtomicType) and kind in _NUMBERS:
        bits = _NUMBERS[kind] - 1
        return dice.choice((0, -1, 2**bits - 1, -(2**bits), dice.randint(-(2**bits), 2**bits - 1)))
    moment = _EPOCH + timedelta(microseconds=dice.randint(-(2**51), 2**51))
    found: dict[DataType, Any] = {
        types.BOOLEAN: dice.random() < 0.5,
        types.DOUBLE: dice.choice((0.0, -0.0, 1.5, float(dice.randint(-1000, 1000)), 1e20)),
        types.STRING: dice.choice(_TEXTS),
        types.BINARY: dice.randbytes(dice.randrange(8)),
        types.DATE: date(1970, 1, 1) + timedelta(days=dice.randint(-30_000, 60_000)),
        types.TIMESTAMP: moment,
        types.TIMESTAMP_NTZ: moment.replace(tzinfo=None),
    }
    return found[kind]
