"""A format for tests: a value is a line of texts separated by commas, one for each field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa

from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.values.data_types import LONG, StructType, parse_struct
from pyspark_kafka.domain.values.errors import DecodedTooLargeError, FailureReason
from pyspark_kafka.ports.values.value_format import (
    DecodedValues,
    Payloads,
    ValueDecoder,
    ValueFormat,
)
from pyspark_kafka.ports.values.value_types import arrow_type

if TYPE_CHECKING:
    from pyspark_kafka.domain.values.registry import Schema
    from pyspark_kafka.domain.values.value_options import ValueOptions

MAX_ROWS: Final = 8
"""More rows are too large to be decoded at once."""


@final
class LineDecoder(ValueDecoder):
    """Reads ``12,ada`` as a number and a text; too few texts or a bad number make a bad value."""

    def __init__(self, whole: StructType, data_type: StructType) -> None:
        self._whole = whole
        self._data_type = data_type

    @property
    def data_type(self) -> StructType:
        return self._data_type

    @property
    def field_names(self) -> tuple[str, ...]:
        return self._data_type.names

    def decode(self, payloads: Payloads) -> DecodedValues:
        rows = len(payloads.starts)
        if rows > MAX_ROWS:
            raise DecodedTooLargeError(rows)
        reasons, fields = payloads.reasons.copy(), np.full(rows, -1, np.int32)
        decoded: list[dict[str, Any] | None] = []
        for row in range(rows):
            value = None
            if payloads.starts[row] >= 0 and not reasons[row]:
                value, reasons[row], fields[row] = self._value(_payload(payloads, row))
            decoded.append(value)
        column: pa.Array[Any] = pa.array(decoded, arrow_type(self._data_type))
        return DecodedValues(column, reasons, fields)

    def _value(self, payload: bytes) -> tuple[dict[str, Any] | None, int, int]:
        texts = payload.decode(errors="replace").split(",")
        if len(texts) < len(self._whole.fields):
            return None, FailureReason.TRUNCATED, -1
        named = dict(zip(self._whole.names, texts, strict=False))
        value: dict[str, Any] = {}
        for number, field in enumerate(self._data_type.fields):
            text = named[field.name]
            if field.type == LONG and not text.lstrip("-").isdecimal():
                return value, FailureReason.TYPE_MISMATCH, number
            value[field.name] = int(text) if field.type == LONG else text
        return value, FailureReason.NONE, -1


def _payload(payloads: Payloads, row: int) -> bytes:
    data = payloads.values.buffers()[2]
    start, end = int(payloads.starts[row]), int(payloads.ends[row])
    return b"" if data is None else data.slice(start, end - start).to_pybytes()


def _data_type(options: ValueOptions, schema: Schema | None) -> StructType:
    text = options.schema if schema is None else schema.text
    if text is None:
        raise OptionsError([f"Option '{options.column}Schema' is needed"])
    return parse_struct(text)


def _decoder(options: ValueOptions, schema: Schema | None, wanted: StructType) -> LineDecoder:
    return LineDecoder(_data_type(options, schema), wanted)


VALUE_FORMAT: Final = ValueFormat(_data_type, _decoder)
