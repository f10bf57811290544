from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.ports.values.value_format import ValueEncoder
from pyspark_kafka.testing import ValueEncoderContract

from .adapter import Faults, suite_with


class Passing(ValueEncoder):
    """Writes JSON with Python's encoder."""

    @property
    def schema(self) -> Schema:
        return Schema(SchemaType.JSON, '{"type": "object"}')

    def encode(self, column: pa.Array[Any], prefix: bytes = b"") -> pa.Array[Any]:
        return self.result([self.value(row, prefix) for row in column.to_pylist()])

    def value(self, row: dict[str, Any] | None, prefix: bytes) -> bytes | None:
        return None if row is None else prefix + json.dumps(row).encode()

    def result(self, values: list[bytes | None]) -> pa.Array[Any]:
        return pa.array(values, pa.binary())


def _decode() -> Callable[[bytes], dict[str, Any]]:
    return json.loads


def _suite(adapter: type[ValueEncoder]) -> type:
    return suite_with(ValueEncoderContract, encoder=adapter, decode=_decode)


_Contract: Final = ValueEncoderContract


wrong: Final = Faults(Passing, _suite)


@wrong(_Contract.test_the_schema)
class HasNoSchema(Passing):
    """Has an empty schema."""

    @property
    def schema(self):
        return Schema(SchemaType.JSON, "")


@wrong(_Contract.test_values_keep_their_order, "result")
def returns_the_last_value_first(self, values):
    return Passing.result(self, values[::-1])


@wrong(_Contract.test_no_rows, "result")
def returns_an_array_of_texts_where_there_are_no_rows(self, values):
    return Passing.result(self, values) if values else pa.array([], pa.string())


@wrong(_Contract.test_a_row_that_is_null_is_a_tombstone, "value")
def writes_the_word_null_for_a_row_that_is_null(self, row, prefix):
    return prefix + json.dumps(row).encode()


@wrong(_Contract.test_a_prefix, "encode")
def writes_the_prefix_once_for_each_batch(self, column, prefix=b""):
    rows = column.to_pylist()
    return self.result(
        [self.value(row, prefix if number == 0 else b"") for number, row in enumerate(rows)]
    )


@wrong(_Contract.test_a_slice, "encode")
def reads_a_slice_from_the_beginning_of_its_buffers(self, column, prefix=b""):
    members: Any = column
    numbers = members.field(0)
    whole = pa.Array.from_buffers(numbers.type, numbers.offset + len(numbers), numbers.buffers())
    rows = column.to_pylist()
    for row, number in zip(rows, whole.to_pylist(), strict=False):
        if row is not None:
            row["number"] = number
    return self.result([self.value(row, prefix) for row in rows])


@wrong(_Contract.test_values_below_a_row_that_is_null, "encode")
def encodes_the_fields_of_a_row_that_is_null(self, column, prefix=b""):
    members: Any = column
    names = [field.name for field in column.type]
    fields = [members.field(number).to_pylist() for number in range(len(names))]
    rows = [dict(zip(names, values, strict=True)) for values in zip(*fields, strict=True)]
    return self.result([self.value(row, prefix) for row in rows])


@wrong(_Contract.test_many_rows, "result")
def truncates_a_large_batch(self, values):
    kept = values[:2_000]
    return Passing.result(self, kept + [b"{}"] * (len(values) - len(kept)))


@wrong(_Contract.test_a_result_stays)
class ReusesItsResult(Passing):
    """Writes into the bytes that it has returned."""

    memory: bytearray | None = None

    def result(self, values):
        made = super().result(values)
        data = made.buffers()[2]
        self.memory = self.memory or bytearray(1_000_000)
        content = b"" if data is None else data.to_pybytes()
        self.memory[: len(content)] = content
        reused = pa.py_buffer(self.memory)
        return pa.Array.from_buffers(pa.binary(), len(made), [*made.buffers()[:2], reused])
