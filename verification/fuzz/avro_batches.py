"""Batches of Avro values that are damaged, and what has to hold for them."""

import io
import json
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa
from fastavro.utils import generate_one

from pyspark_kafka.adapters.values.avro import decoder
from pyspark_kafka.adapters.values.avro.value_format import VALUE_FORMAT
from pyspark_kafka.adapters.values.columns import column_set
from pyspark_kafka.domain.values.data_types import StructType
from pyspark_kafka.domain.values.errors import FailureReason
from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.ports.values.value_format import (
    DecodedValues,
    Payloads,
    ValueDecoder,
    WriterSchema,
)
from tests.unit.adapters.values.avro.corpus import CASES, Case
from tests.unit.adapters.values.avro.decoding import options_of, plain

from .guarded import guarded_array, little_memory
from .inputs import mutated
from .parsers import quickly

ROWS: Final = 400
"""The values of a batch."""

_GENERATED: Final = 20
_ALONE: Final = 3
_NULLABLE_ROOTS: Final = frozenset({"nullable root", "null root"})


def try_batch(seed: int, number: int) -> Counter[str]:
    """Decode a batch in several ways; return how many values have each reason.

    :raises AssertionError: if a value is not the same in each of them, or not well-formed.
    """
    dice = random.Random(f"{seed}-{number}")  # noqa: S311  # nothing is secret
    case = dice.choice(CASES)
    values = _decoder(case.name, dice.randrange(3))
    schemas = _writers(case, dice)
    parts = [_payload(dice, case) for _ in range(ROWS)]
    writers = np.array([dice.randrange(-1, len(schemas)) for _ in range(ROWS)], np.int32)
    with little_memory({column_set: {"_MIN_DATA": 1}, decoder: {"_MIN_SLOTS": 2}}), quickly():
        found = values.decode(_payloads(parts, writers, schemas))
    found.column.validate(full=True)
    _check_rows(case, found)
    order = np.arange(ROWS)[::-1]
    _check_same(found, order, values.decode(_payloads(parts[::-1], writers[order], schemas)))
    for row in dice.sample(range(ROWS), _ALONE):
        alone = values.decode(_payloads([parts[row]], writers[row : row + 1], schemas))
        _check_same(found, np.array([row]), alone)
    return Counter(FailureReason(int(reason)).name for reason in found.reasons)


@cache
def _decoder(name: str, kind: int) -> ValueDecoder:
    """Return a decoder of all fields of a case, or of some."""
    case = next(case for case in CASES if case.name == name)
    options = options_of(case.text, case.settings)
    struct = VALUE_FORMAT.data_type(options, None)
    fields = struct.fields[kind - 1 :: 2] if kind else struct.fields
    found = VALUE_FORMAT.decoder(options, None, StructType(fields))
    # The kernel is compiled before time is taken.
    found.decode(_payloads([b""], np.array([-1], np.int32), ()))
    return found


def _writers(case: Case, dice: random.Random) -> tuple[WriterSchema, ...]:
    others = [case, *dice.sample(CASES, 2)]
    return tuple(
        WriterSchema(one.name, Schema(SchemaType.AVRO, one.text))
        for one in others[: dice.choice((1, 1, 3))]
    )


@cache
def _valid(name: str) -> Sequence[bytes]:
    """Return datums of a case: its own, and some that fastavro makes."""
    case = next(case for case in CASES if case.name == name)
    found = case.payloads()
    for _ in range(_GENERATED):
        # It cannot make all logical types, and follows recursion for ever.
        with suppress(Exception):
            stream = io.BytesIO()
            fastavro.schemaless_writer(stream, case.writer, generate_one(json.loads(case.text)))
            found.append(stream.getvalue())
    return found


def _payload(dice: random.Random, case: Case) -> bytes:
    valid = dice.choice(_valid(case.name))
    match dice.randrange(8):
        case 0 | 1:
            return valid
        case 2:
            return dice.randbytes(dice.randrange(12))
        case 3:
            return valid[: dice.randrange(len(valid) + 1)]
        case _:
            return mutated(dice, valid)


def _payloads(parts: Sequence[bytes], writers: Any, schemas: tuple[WriterSchema, ...]) -> Payloads:
    """Return payloads of which the last one ends at a forbidden page."""
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    values = guarded_array([b"".join(parts)])
    starts = np.concatenate(([0], ends[:-1]))
    return Payloads(values, starts, ends, np.zeros(len(parts), np.uint8), writers, schemas)


def _check_rows(case: Case, found: DecodedValues) -> None:
    is_null = np.asarray(found.column.is_null())
    assert is_null[found.reasons != 0].all()
    if case.name not in _NULLABLE_ROOTS:
        assert not is_null[found.reasons == 0].any()
    assert (found.fields[found.reasons == 0] == -1).all()


def _check_same(found: DecodedValues, rows: Any, again: DecodedValues) -> None:
    assert (found.reasons[rows] == again.reasons).all()
    assert (found.fields[rows] == again.fields).all()
    expected = found.column.take(pa.array(rows))
    if not expected.equals(again.column):
        # A NaN is not equal to itself.
        assert list(map(plain, expected)) == list(map(plain, again.column))
