"""``Any`` messages as JSON (``convert.any.fields.to.json``).

The kernel keeps their bytes, and Python shows them: as slow as it is in Spark.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass

from ...domain.values.errors import FailureReason
from .repairs import children_of, numbers_below, with_children

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from ..kernels.arrays import Int32Array, Int64Array, UInt8Array
    from .program import Program
    from .settings import ProtobufSettings

_HTML: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&='\u2028\u2029"}
"""What Java's ``JsonFormat`` escapes, as Gson does by default."""


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
                children_of(array), numbers_below(self._columns, number), strict=True
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
