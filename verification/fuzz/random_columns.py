"""Random types of rows, and struct arrays of them in layouts that Arrow allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from pyspark_kafka.domain.values import data_types as types
from pyspark_kafka.domain.values.data_types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from pyspark_kafka.ports.values.value_types import arrow_type

from .guarded import guarded_empty

Numbers: TypeAlias = np.ndarray[Any, Any]

ATOMS: Final = (
    *(types.BOOLEAN, types.BYTE, types.SHORT, types.INTEGER, types.LONG),
    *(types.FLOAT, types.DOUBLE, types.STRING, types.STRING, types.BINARY),
    *(types.DATE, types.TIMESTAMP, types.TIMESTAMP_NTZ),
)
TEXTS: Final = tuple(
    text.encode()
    for text in (
        *("", "a", "abc", 'a "quoted" one', "back\\slash", "\0", "\t\n\r\b\f\x1f\x7f", "/"),
        *("ü", "\u2028\u2029", "\ufffd", "😀", "x" * 127, "y" * 128, "é" * 300, "null", "{}"),
    )
)
NOT_UTF8: Final = (b"\xff", b"\xc3", b"ok\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc0\x80", b"a\x80b")
BINARIES: Final = (*TEXTS, *NOT_UTF8, bytes(range(256)))
_EXTREMES: Final = np.array([0, 0, 1, -1, 63, 64, 127, 128, 2**31 - 1, 2**63 - 1, -(2**63)])
_DAYS: Final = (-719_162, 2_932_896)
_MILLIS: Final = (-62_135_596_800_000, 253_402_300_799_999)
_MAX_PADDING: Final = 12


@dataclass(frozen=True, slots=True)
class RandomTypes:
    """Makes types at random, whose fields have some of the names."""

    dice: Any
    names: Sequence[str]

    def struct(self, depth: int = 3) -> StructType:
        """Return a struct that is nested so deeply at most."""
        count = 1 + int(self.dice.integers(len(self.names)))
        fields = (StructField(name, self._type(depth - 1)) for name in self.names[:count])
        return StructType(tuple(fields))

    def _type(self, depth: int) -> DataType:
        match int(self.dice.integers(8)) if depth else -1:
            case 0:
                return self.struct(depth)
            case 1:
                return ArrayType(self._type(depth - 1))
            case 2:
                return MapType(types.STRING, self._type(depth - 1))
            case 3:
                precision = 1 + int(self.dice.integers(types.MAX_PRECISION))
                return DecimalType(precision, int(self.dice.integers(precision + 1)))
        return ATOMS[int(self.dice.integers(len(ATOMS)))]


@dataclass(frozen=True, slots=True)
class RandomColumns:
    """Makes arrays at random: parts of larger ones, with any values where they are null.

    Bytes end at forbidden pages. Keys of a map differ. Times are whole milliseconds between the
    years 1 and 9999, which each format writes.
    """

    dice: Any
    texts: Sequence[bytes] = TEXTS

    def array(self, data_type: DataType, rows: int, *, has_nulls: bool = True) -> pa.Array[Any]:
        before, behind = (int(size) for size in self.dice.integers(0, _MAX_PADDING, 2))
        total = before + rows + behind
        valid = self._valid(total) if has_nulls else None
        return self._whole(data_type, total, valid).slice(before, rows)

    def headers(self, rows: int) -> pa.Array[Any]:
        """Return lists of pairs of a key, which is not null, and a value."""
        before = int(self.dice.integers(0, _MAX_PADDING))
        starts = self._starts(self.dice.integers(0, 4, before + rows))
        count = int(starts[-1]) + 3
        keys = self.array(types.STRING, count, has_nulls=False)
        pairs = pa.StructArray.from_arrays(
            [keys, self.array(types.BINARY, count)], ["key", "value"]
        )
        buffers = [self._valid(before + rows), _buffer(starts)]
        lists = pa.Array.from_buffers(
            pa.list_(pairs.type), before + rows, buffers, children=[pairs]
        )
        return lists.slice(before)

    def _whole(self, data_type: DataType, rows: int, valid: pa.Buffer | None) -> pa.Array[Any]:
        arrow, buffers, children = arrow_type(data_type), [valid], []
        match data_type:
            case StructType(fields):
                children = [self.array(field.type, rows) for field in fields]
            case ArrayType(element):
                starts = self._starts(self.dice.integers(0, 4, rows))
                buffers.append(_buffer(starts))
                children = [self.array(element, int(starts[-1]) + 3)]
            case MapType(_, value):
                starts = self._starts(self.dice.integers(0, 4, rows))
                buffers.append(_buffer(starts))
                children = [self._entries(arrow, value, int(starts[-1]) + 3)]
            case types.STRING:
                buffers += self._bytes(self.dice.integers(0, len(self.texts), rows), self.texts)
            case types.BINARY:
                buffers += self._bytes(self.dice.integers(0, len(BINARIES), rows), BINARIES)
            case types.BOOLEAN:
                buffers.append(_bits(self.dice.random(rows) < 0.5))
            case _:
                buffers.append(_buffer(self._fixed(data_type, rows)))
        return pa.Array.from_buffers(arrow, rows, buffers, children=children)

    def _valid(self, rows: int) -> pa.Buffer | None:
        share = self.dice.choice((0.0, 0.1, 0.5, 1.0))
        return _bits(self.dice.random(rows) >= share) if share else None

    def _starts(self, lengths: Numbers) -> Numbers:
        first = self.dice.integers(0, 5)
        return np.concatenate(([first], first + np.cumsum(lengths))).astype(np.int32)

    def _entries(self, arrow: Any, value: DataType, count: int) -> pa.Array[Any]:
        texts = [b"%d%s" % (number, TEXTS[number % len(TEXTS)]) for number in range(count)]
        keys = pa.Array.from_buffers(
            pa.string(), count, [None, *self._bytes(np.arange(count), texts)]
        )
        kind = pa.struct([arrow.key_field, arrow.item_field])
        return pa.Array.from_buffers(kind, count, [None], children=[keys, self.array(value, count)])

    def _bytes(self, chosen: Numbers, pool: Sequence[bytes]) -> list[pa.Buffer]:
        first = self.dice.bytes(int(self.dice.integers(0, 5)))
        parts = [pool[number] for number in chosen]
        ends = len(first) + np.cumsum([0, *map(len, parts)])
        data = np.frombuffer(b"".join((first, *parts)), np.uint8)
        return [_buffer(ends.astype(np.int32)), _buffer(data)]

    def _fixed(self, data_type: DataType, rows: int) -> Numbers:
        if isinstance(data_type, DecimalType):
            return self._decimals(data_type.precision, rows)
        if data_type == types.DATE:
            return self.dice.integers(*_DAYS, rows, np.int32)
        if data_type in {types.TIMESTAMP, types.TIMESTAMP_NTZ}:
            return self.dice.integers(*_MILLIS, rows, np.int64) * 1000
        numbers = self._integers(rows)
        if data_type not in {types.FLOAT, types.DOUBLE}:
            width: Any = arrow_type(data_type)
            return numbers.astype(f"i{width.bit_width // 8}")
        shown = numbers / self.dice.choice((1, 7, 1000))
        any_bits = numbers.view(np.float64)
        with np.errstate(all="ignore"):
            chosen = np.where(self.dice.random(rows) < 0.5, shown, any_bits)
            return chosen.astype("f4" if data_type == types.FLOAT else "f8")

    def _integers(self, rows: int) -> Numbers:
        """Return numbers of any length, and extreme ones."""
        any_bits = self.dice.integers(-(2**63), 2**63 - 1, rows, np.int64)
        numbers = any_bits >> self.dice.integers(0, 64, rows)
        is_extreme = self.dice.random(rows) < 0.2
        return np.where(is_extreme, self.dice.choice(_EXTREMES, rows), numbers)

    def _decimals(self, precision: int, rows: int) -> Numbers:
        low = self._integers(rows)
        if precision > 20:
            high = np.fmod(self._integers(rows), 10**precision >> 64)
        else:
            low = np.fmod(low, 10 ** min(precision, 18))
            high = np.where(low < 0, -1, 0)
        return np.stack((low, high), axis=1).ravel()


def _bits(flags: Numbers) -> pa.Buffer:
    return _buffer(np.packbits(flags, bitorder="little"))


def _buffer(array: Numbers) -> pa.Buffer:
    """Return a copy at the end of a page."""
    copy = guarded_empty(len(array), array.dtype)
    copy[:] = array
    return pa.py_buffer(copy)  # type: ignore[arg-type]  # the stubs know bytes only
