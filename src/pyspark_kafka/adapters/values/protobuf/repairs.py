"""Rare post-processing of a decoded column: invalid texts, equal keys, ``Any`` as JSON.

The kernel keeps the bytes of ``Any``, and Python converts them, which is as slow as in Spark.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass

from ....domain.values.errors import FailureReason
from ...kafka_format.column_buffers import valid_utf8
from ..encoding.input_columns import children_of
from . import program_layout as at

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from ...kernels.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
    from ..columns.layout import Column
    from .program import Program
    from .spark_types import ProtobufSettings


def repaired(
    array: pa.Array[Any], columns: tuple[Column, ...], marks: Int64Array, number: int = 0
) -> pa.Array[Any]:
    """Return a column with valid texts, and with the last of equal keys in each map."""
    column = columns[number]
    if not marks[number : column.end].any():
        return array
    if marks[number] & at.INVALID_UTF8:
        return _valid_texts(array)
    below = [
        repaired(child, columns, marks, child_number)
        for child, child_number in zip(children_of(array), columns[number].children, strict=True)
    ]
    whole = with_children(array, below)
    return _unique_keys(whole) if marks[number] & at.DUPLICATE_KEYS else whole


def with_children(array: pa.Array[Any], below: list[pa.Array[Any]]) -> pa.Array[Any]:
    """Return an array with other arrays below it."""
    buffers = array.buffers()[: 1 if pa.types.is_struct(array.type) else 2]
    return pa.Array.from_buffers(array.type, len(array), buffers, array.null_count, children=below)


def _valid_texts(array: pa.Array[Any]) -> pa.Array[Any]:
    """Replace invalid UTF-8 as Java's ``String`` does."""
    valid = valid_utf8(array.cast(pa.binary()))
    texts: pa.Array[Any] = pc.if_else(array.is_valid(), valid, pa.scalar(None, pa.string()))
    return texts


def _unique_keys(array: Any) -> pa.Array[Any]:
    """Keep the last entry of each key, as Protobuf's specification requires."""
    offsets = np.asarray(array.offsets)
    keep = _is_last(np.repeat(np.arange(len(array)), np.diff(offsets)), array.keys)
    kept = np.concatenate(([0], np.cumsum(keep)))
    mask = pa.array(keep)
    entries = pa.StructArray.from_arrays(
        [array.keys.filter(mask), array.items.filter(mask)],
        fields=[array.type.key_field, array.type.item_field],
    )
    new_offsets = pa.py_buffer(kept[offsets].astype(np.int32))
    buffers = [array.buffers()[0], new_offsets]
    return pa.Array.from_buffers(
        array.type, len(array), buffers, array.null_count, children=[entries]
    )


def _is_last(rows: Int64Array, keys: pa.Array[Any]) -> BoolArray:
    codes = np.asarray(keys.dictionary_encode().indices).astype(np.int64)
    pairs = rows * (int(codes.max(initial=0)) + 1) + codes
    _, first_from_behind = np.unique(pairs[::-1], return_index=True)
    is_last = np.zeros(len(pairs), np.bool_)
    is_last[len(pairs) - 1 - first_from_behind] = True
    return is_last


_HTML: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&='\u2028\u2029"}
"""The characters that Java's ``JsonFormat`` escapes, as Gson does by default."""


@final
class AnyJson:
    """Shows the ``Any`` messages of decoded columns."""

    def __init__(self, message: Descriptor, program: Program, settings: ProtobufSettings) -> None:
        self._pool = message.file.pool
        self._class = GetMessageClass(self._pool.FindMessageTypeByName("google.protobuf.Any"))
        self._columns = program.columns
        self._numbers = program.any_columns
        self._enums_as_ints = settings.enums_as_ints

    def shown(
        self, column: pa.Array[Any], reasons: UInt8Array, fields: Int32Array
    ) -> pa.Array[Any]:
        """Return a column with texts instead of messages.

        A row with a message of an unknown type, or with broken bytes, becomes null. It gets a
        reason, and the number of the column.
        """
        rows = np.arange(len(column), dtype=np.int64)
        failed: dict[int, int] = {}
        whole = self._shown(column, 0, rows, failed)
        if not failed:
            return whole
        places = list(failed)
        reasons[places] = FailureReason.MALFORMED
        fields[places] = list(failed.values())
        is_good = np.ones(len(column), np.bool_)
        is_good[places] = False
        texts: pa.Array[Any] = pc.if_else(
            pa.array(is_good), whole, pa.scalar(None, type=whole.type)
        )
        return texts

    def _shown(
        self, array: pa.Array[Any], number: int, rows: Int64Array, failed: dict[int, int]
    ) -> pa.Array[Any]:
        end = self._columns[number].end
        if not any(number <= one < end for one in self._numbers):
            return array
        if number in self._numbers:
            return self._texts(array, number, rows, failed)
        if isinstance(array, pa.ListArray | pa.MapArray):
            offsets = np.asarray(array.offsets)
            rows = np.repeat(rows, np.diff(offsets))
        below = [
            self._shown(child, child_number, rows, failed)
            for child, child_number in zip(
                children_of(array), self._columns[number].children, strict=True
            )
        ]
        return with_children(array, below)

    def _texts(
        self, array: pa.Array[Any], number: int, rows: Int64Array, failed: dict[int, int]
    ) -> pa.Array[Any]:
        texts: list[str | None] = []
        for row, value in zip(rows, array.cast(pa.binary()).to_pylist(), strict=True):
            text = None
            if value is not None:
                try:
                    text = self._text(value)
                except Exception:  # noqa: BLE001  # what cannot be shown is the record's fault
                    failed.setdefault(int(row), number)
            texts.append(text)
        return pa.array(texts, pa.string())

    def _text(self, value: bytes) -> str:
        message: Any = self._class.FromString(value)
        if message.type_url and "/" not in message.type_url:
            raise ValueError("Java refuses a type without a host")
        shown = MessageToDict(
            message,
            preserving_proto_field_name=True,
            use_integers_for_enums=self._enums_as_ints,
            descriptor_pool=self._pool,
        )
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).translate(_HTML)
