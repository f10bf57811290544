"""The table by which the kernel encodes rows as JSON: an entry for each column.

An entry has eight numbers of 64 bits; offsets in it are in bytes. The options stand before the
entries, and the names of fields and the patterns of times behind them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa

from ....domain.errors import OptionsError
from .number_writing_kernel import NUMBER_ROOM
from .patterns import DATE_PATTERN, TIMESTAMP_NTZ_PATTERN, TIMESTAMP_PATTERN, writing_steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...kernels.arrays import Int64Array, UInt8Array
    from ..columns.layout import Column

STRIDE: Final = 64
KIND, END, NAME, NAME_SIZE, SCALE, PATTERN, STEPS = range(0, 56, 8)
"""The name is a comma and the field's name in quotes with a colon; the pattern is of a time."""

HEAD: Final = 64
KEEPS_NULLS, IS_ASCII, ROOM = range(0, 24, 8)
"""The words before the entries; the last is the bytes of the longest value that is not a text, with
the longest name."""

BOOL, INT8, INT16, INT32, INT64, FLOAT, DOUBLE, DECIMAL, STRING, BINARY = range(10)
DATE, LOCAL_TIMESTAMP, TIMESTAMP, STRUCT, LIST, MAP = range(10, 16)

_WORDS: Final = STRIDE // 8
_KINDS: Final = {
    pa.bool_(): BOOL,
    pa.int8(): INT8,
    pa.int16(): INT16,
    pa.int32(): INT32,
    pa.int64(): INT64,
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
    pa.string(): STRING,
    pa.binary(): BINARY,
    pa.date32(): DATE,
    pa.timestamp("us"): LOCAL_TIMESTAMP,
    pa.timestamp("us", "UTC"): TIMESTAMP,
}
_KEY_KINDS: Final = {DATE: INT32, LOCAL_TIMESTAMP: INT64, TIMESTAMP: INT64}
"""Keys of maps are written as the numbers by which Spark represents them."""

_SPARE_ROOM: Final = 16
"""The bytes for brackets, and those that a function may write behind its text."""

_MAX_STEP: Final = 10
"""The longest part of a time: an offset, or nine digits."""


@final
class EncodeTable:
    """The table of the columns of a struct, with the memory to which its addresses point."""

    def __init__(self, columns: Sequence[Column], settings: Mapping[str, str]) -> None:
        """Compile the columns of a struct, with ``to_json``'s options, in lower case.

        :raises OptionsError: if a map's keys have no text, or a pattern is not supported.
        """
        self._columns = columns
        self._settings = settings
        self._is_ascii = settings.get("writenonasciicharacterascodepoint", "").lower() == "true"
        self._kept: list[Int64Array | UInt8Array] = []
        self._longest_name = self._longest_time = 0
        self._patterns = {
            DATE: self._pattern("dateFormat", DATE_PATTERN, has_time=False),
            LOCAL_TIMESTAMP: self._pattern("timestampNTZFormat", TIMESTAMP_NTZ_PATTERN),
            TIMESTAMP: self._pattern("timestampFormat", TIMESTAMP_PATTERN, has_offset=True),
        }
        self.words: Int64Array = np.zeros(HEAD // 8 + len(columns) * _WORDS, np.int64)
        for number in range(len(columns)):
            self._compile(number)
        self.words[KEEPS_NULLS // 8] = settings.get("ignorenullfields", "").lower() == "false"
        self.words[IS_ASCII // 8] = self._is_ascii
        self.words[ROOM // 8] = (
            self._longest_name + max(NUMBER_ROOM, self._longest_time) + _SPARE_ROOM
        )

    def _pattern(
        self, option: str, default: str, *, has_time: bool = True, has_offset: bool = False
    ) -> Int64Array:
        pattern = self._settings.get(option.lower(), default)
        try:
            steps = writing_steps(pattern, has_time=has_time, has_offset=has_offset)
        except ValueError as error:
            raise OptionsError([f"'{option}' is '{pattern}': {error}"]) from None
        self._kept.append(steps)
        self._longest_time = max(self._longest_time, _MAX_STEP * len(steps))
        return steps

    def _compile(self, number: int) -> None:
        column = self._columns[number]
        entry = self._entry(number)
        type_: Any = column.type
        kind = _kind(type_)
        if kind is None:
            problem = f"'{column.path}' is of type {type_}. Cast it to a string"
            raise OptionsError([f"Intervals cannot be written as JSON: {problem}"])
        if self._is_key(number):
            kind = _KEY_KINDS.get(kind, kind)
            if kind == BINARY or kind >= STRUCT:
                problem = f"'{column.path}' is of type {type_}. Cast the keys to a string"
                raise OptionsError([f"Map keys cannot be written as JSON: {problem}"])
        entry[KIND // 8], entry[END // 8] = kind, column.end
        if kind == DECIMAL:
            entry[SCALE // 8] = type_.scale
        elif kind in self._patterns:
            entry[PATTERN // 8] = self._patterns[kind].ctypes.data
            entry[STEPS // 8] = len(self._patterns[kind])
        if kind == STRUCT:
            for place, below in enumerate(column.children):
                self._name(below, type_.field(place).name)

    def _entry(self, number: int) -> Int64Array:
        return self.words[HEAD // 8 + number * _WORDS :][:_WORDS]

    def _is_key(self, number: int) -> bool:
        """Return whether a column has a map's keys: the first field of its entries."""
        entries = self._columns[number].parent
        map_ = self._columns[entries].parent
        is_first = number == entries + 1
        return is_first and map_ < entries and pa.types.is_map(self._columns[map_].type)

    def _name(self, number: int, name: str) -> None:
        entry = self._entry(number)
        text = f",{json_text(name, is_ascii=self._is_ascii)}:".encode()
        array = np.frombuffer(text, np.uint8)
        self._kept.append(array)
        self._longest_name = max(self._longest_name, len(text))
        entry[NAME // 8], entry[NAME_SIZE // 8] = array.ctypes.data, len(text)


def json_text(text: str, *, is_ascii: bool) -> str:
    """Return a JSON string with Jackson's escapes, which have upper-case digits."""
    quoted = json.dumps(text, ensure_ascii=is_ascii)
    return re.sub(r"\\\\|\\u[0-9a-f]{4}", _upper_case, quoted)


def _upper_case(escape: re.Match[str]) -> str:
    return "\\u" + escape[0][2:].upper() if escape[0][1] == "u" else escape[0]


def _kind(type_: pa.DataType) -> int | None:
    if pa.types.is_struct(type_):
        return STRUCT
    if pa.types.is_map(type_):
        return MAP
    if pa.types.is_list(type_):
        return LIST
    if pa.types.is_decimal128(type_):
        return DECIMAL
    return _KINDS.get(type_)
