"""Encoders that break a promise of ``ValueEncoder``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pyspark_kafka.domain.values.registry import Schema, SchemaType
from pyspark_kafka.ports.values.value_format import ValueEncoder
from pyspark_kafka.testing import ValueEncoderContract

from .adapter import PortFaults, suite_with, wrong_with

if TYPE_CHECKING:
    from collections.abc import Callable


class Passing(ValueEncoder):
    """Writes JSON with Python's encoder."""

    @property
    def schema(self) -> Schema:
        return Schema(SchemaType.JSON, '{"type": "object"}')

    def encode(self, column: pa.Array[Any], prefix: bytes = b"") -> pa.Array[Any]:
        return self.result([self.value(row, prefix) for row in column.to_pylist()])

    def value(self, row: dict[str, Any] | None, prefix: bytes) -> bytes | None:
        """Return the value of a row."""
        return None if row is None else prefix + json.dumps(row).encode()

    def result(self, values: list[bytes | None]) -> pa.Array[Any]:
        """Return the array of values."""
        return pa.array(values, pa.binary())


class HasNoSchema(Passing):
    """Has an empty schema."""

    @property
    def schema(self) -> Schema:
        return Schema(SchemaType.JSON, "")


class TurnsRowsAround(Passing):
    """Returns the last value first."""

    def result(self, values: list[bytes | None]) -> pa.Array[Any]:
        return super().result(values[::-1])


class ReturnsTexts(Passing):
    """Returns an array of texts where there are no rows."""

    def result(self, values: list[bytes | None]) -> pa.Array[Any]:
        return super().result(values) if values else pa.array([], pa.string())


class WritesNull(Passing):
    """Writes the word null for a row that is null."""

    def value(self, row: dict[str, Any] | None, prefix: bytes) -> bytes | None:
        return prefix + json.dumps(row).encode()


class PrefixesTheFirst(Passing):
    """Writes the prefix once for each batch."""

    def encode(self, column: pa.Array[Any], prefix: bytes = b"") -> pa.Array[Any]:
        rows = column.to_pylist()
        return self.result(
            [self.value(row, prefix if number == 0 else b"") for number, row in enumerate(rows)]
        )


class IgnoresOffsets(Passing):
    """Reads a slice from the beginning of its buffers."""

    def encode(self, column: pa.Array[Any], prefix: bytes = b"") -> pa.Array[Any]:
        members: Any = column
        numbers = members.field(0)
        whole = pa.Array.from_buffers(
            numbers.type, numbers.offset + len(numbers), numbers.buffers()
        )
        rows = column.to_pylist()
        for row, number in zip(rows, whole.to_pylist(), strict=False):
            if row is not None:
                row["number"] = number
        return self.result([self.value(row, prefix) for row in rows])


class LooksBelowNull(Passing):
    """Encodes the fields of a row that is null."""

    def encode(self, column: pa.Array[Any], prefix: bytes = b"") -> pa.Array[Any]:
        members: Any = column
        names = [field.name for field in column.type]
        fields = [members.field(number).to_pylist() for number in range(len(names))]
        rows = [dict(zip(names, values, strict=True)) for values in zip(*fields, strict=True)]
        return self.result([self.value(row, prefix) for row in rows])


class HasLittleRoom(Passing):
    """Truncates a large batch."""

    def result(self, values: list[bytes | None]) -> pa.Array[Any]:
        kept = values[:2_000]
        return super().result(kept + [b"{}"] * (len(values) - len(kept)))


class ReusesItsResult(Passing):
    """Writes into the bytes that it has returned."""

    memory: bytearray | None = None

    def result(self, values: list[bytes | None]) -> pa.Array[Any]:
        made = super().result(values)
        data = made.buffers()[2]
        self.memory = self.memory or bytearray(1_000_000)
        content = b"" if data is None else data.to_pybytes()
        self.memory[: len(content)] = content
        reused = pa.py_buffer(self.memory)
        return pa.Array.from_buffers(pa.binary(), len(made), [*made.buffers()[:2], reused])


def _decode() -> Callable[[bytes], dict[str, Any]]:
    return json.loads


def _suite(adapter: type[ValueEncoder]) -> type:
    return suite_with(ValueEncoderContract, encoder=adapter, decode=_decode)


_wrong: Final = wrong_with(_suite)
_Contract: Final = ValueEncoderContract

FAULTS: Final = PortFaults(
    _suite(Passing),
    (
        *_wrong(_Contract.test_the_schema, HasNoSchema),
        *_wrong(_Contract.test_values_keep_their_order, TurnsRowsAround),
        *_wrong(_Contract.test_no_rows, ReturnsTexts),
        *_wrong(_Contract.test_a_row_that_is_null_is_a_tombstone, WritesNull),
        *_wrong(_Contract.test_a_prefix, PrefixesTheFirst),
        *_wrong(_Contract.test_a_slice, IgnoresOffsets),
        *_wrong(_Contract.test_values_below_a_row_that_is_null, LooksBelowNull),
        *_wrong(_Contract.test_many_rows, HasLittleRoom),
        *_wrong(_Contract.test_a_result_stays, ReusesItsResult),
    ),
)
