"""The contract suite of ``ValueEncoder``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from ..domain.values.data_types import LONG, STRING, StructField, StructType
from ..domain.values.registry import Schema
from ..ports.values.value_format import ValueEncoder
from ..ports.values.value_types import arrow_type
from .fixtures import required_fixture

ENCODED_TYPE = StructType((StructField("number", LONG), StructField("text", STRING)))
"""The type of the rows that the encoder under test takes."""

Value: TypeAlias = "dict[str, Any]"
Decode: TypeAlias = "Callable[[bytes], Value]"

_ADA: Value = {"number": 1, "text": "ada"}
_BOB: Value = {"number": -(2**63), "text": 'b"ób 😀\\'}
_EVE: Value = {"number": 2**63 - 1, "text": ""}


def rows_of(values: Sequence[Value | None]) -> pa.Array[Any]:
    """Return values as a struct array."""
    rows: pa.Array[Any] = pa.array(values, arrow_type(ENCODED_TYPE))
    return rows


def encode(encoder: ValueEncoder, rows: pa.Array[Any], prefix: bytes = b"") -> list[Any]:
    """Return the values of rows."""
    encoded: Any = encoder.encode(rows, prefix)
    assert encoded.type == pa.binary()
    values: list[Any] = encoded.to_pylist()
    return values


class ValueEncoderContract:
    """The contract of ``ValueEncoder``; a subclass overrides the two fixtures."""

    encoder = required_fixture("Return the encoder under test, of ``ENCODED_TYPE``.")
    decode = required_fixture("Return a function that returns the row of a value.")

    def test_the_schema(self, encoder: ValueEncoder) -> None:
        """The schema can be registered, and is the same each time."""
        assert isinstance(encoder.schema, Schema)
        assert encoder.schema.text
        assert encoder.schema == encoder.schema

    def test_values_keep_their_order(self, encoder: ValueEncoder, decode: Decode) -> None:
        """Rows stay in order, with the extremes of their types."""
        values = [_ADA, _BOB, _EVE, _ADA]
        assert [*map(decode, encode(encoder, rows_of(values)))] == values

    def test_no_rows(self, encoder: ValueEncoder) -> None:
        """A batch without rows has no values."""
        assert encode(encoder, rows_of([])) == []

    def test_a_row_that_is_null_is_a_tombstone(self, encoder: ValueEncoder) -> None:
        """The value is null with a prefix, too, and where all rows are null."""
        for values in ([None], [_ADA, None, _BOB]):
            encoded = encode(encoder, rows_of(values), b"prefix")
            assert [each is None for each in encoded] == [value is None for value in values]

    def test_a_prefix(self, encoder: ValueEncoder, decode: Decode) -> None:
        """Each value follows the prefix."""
        encoded = encode(encoder, rows_of([_ADA, _BOB]), b"\0\0\0\0\7")
        assert [value[:5] for value in encoded] == [b"\0\0\0\0\7"] * 2
        assert [decode(value[5:]) for value in encoded] == [_ADA, _BOB]

    def test_a_slice(self, encoder: ValueEncoder, decode: Decode) -> None:
        """Rows before and after the slice are not encoded."""
        rows = rows_of([_EVE, _EVE, None, _ADA, _BOB, _EVE]).slice(2, 3)
        encoded = encode(encoder, rows)
        assert encoded[0] is None
        assert [*map(decode, encoded[1:])] == [_ADA, _BOB]

    def test_values_below_a_row_that_is_null(self, encoder: ValueEncoder, decode: Decode) -> None:
        """Values below a null are not encoded: Arrow may have any there."""
        fields: list[pa.Array[Any]] = [pa.array([1, 2]), pa.array(["ada", "bob"])]
        rows: pa.Array[Any] = pa.StructArray.from_arrays(
            fields, ["number", "text"], mask=pa.array([False, True])
        )
        first, second = encode(encoder, rows)
        assert (decode(first), second) == (_ADA, None)

    def test_many_rows(self, encoder: ValueEncoder, decode: Decode) -> None:
        """A batch may have more and longer rows than the ones before."""
        encoder.encode(rows_of([_ADA]))
        numbers = range(4_000)
        values: list[Value] = [{"number": one, "text": "x" * (one % 400)} for one in numbers]
        assert [*map(decode, encode(encoder, rows_of(values)))] == values

    def test_a_result_stays(self, encoder: ValueEncoder, decode: Decode) -> None:
        """Later batches do not change a result."""
        first: Any = encoder.encode(rows_of([_ADA, _BOB]))
        encoder.encode(rows_of([_EVE, _EVE, _EVE]))
        assert [*map(decode, first.to_pylist())] == [_ADA, _BOB]
