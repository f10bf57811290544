"""Decoding Avro values in tests."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_kafka.adapters.values.avro.value_format import VALUE_FORMAT
from pyspark_kafka.domain.values.data_types import parse_struct
from pyspark_kafka.domain.values.errors import FailureReason
from pyspark_kafka.domain.values.value_options import ValueOptions
from pyspark_kafka.ports.values.value_format import (
    DecodedValues,
    Payloads,
    ValueDecoder,
    WriterSchema,
)

from ..json import payloads


def options_of(schema: str | None, settings: Mapping[str, str] | None = None) -> ValueOptions:
    """Return the options of a column of Avro values."""
    pairs = tuple((name.lower(), value) for name, value in (settings or {}).items())
    return ValueOptions("value", "avro", schema=schema, settings=pairs)


def decoder_of(
    schema: Any, wanted: str | None = None, settings: Mapping[str, str] | None = None
) -> ValueDecoder:
    """Return a decoder of a schema: of the wanted columns, or of all."""
    options = options_of(json.dumps(schema), settings)
    struct = parse_struct(wanted) if wanted else VALUE_FORMAT.data_type(options, None)
    return VALUE_FORMAT.decoder(options, None, struct)


def payloads_of(
    values: Sequence[bytes | None],
    writers: Sequence[int] | None = None,
    schemas: tuple[WriterSchema, ...] = (),
    reasons: Sequence[int] | None = None,
) -> Payloads:
    """Return payloads without framing."""
    unframed = payloads.payloads_of(values)
    return replace(
        unframed,
        reasons=unframed.reasons if reasons is None else np.array(reasons, np.uint8),
        writers=unframed.writers if writers is None else np.array(writers, np.int32),
        schemas=schemas,
    )


def reasons_of(decoded: DecodedValues) -> list[str]:
    """Return the names of the reasons."""
    return [FailureReason(int(reason)).name for reason in decoded.reasons]


def rows_of(decoded: DecodedValues) -> list[Any]:
    """Return the rows as Python values."""
    return decoded.column.to_pylist()


def plain(scalar: Any) -> Any:
    """Return a value to compare: texts as bytes, instants as numbers, NaN equal to itself."""
    if not scalar.is_valid:
        return None
    type_ = scalar.type
    if pa.types.is_struct(type_):
        return {name: plain(value) for name, value in scalar.items()}
    if pa.types.is_map(type_):
        return {plain(entry["key"]): plain(entry["value"]) for entry in scalar.values}
    if pa.types.is_list(type_):
        return [plain(element) for element in scalar.values]
    return _plain_atom(scalar, type_)


def _plain_atom(scalar: Any, type_: pa.DataType) -> Any:
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return scalar.value
    if pa.types.is_string(type_):
        # Spark's may not be UTF-8.
        return scalar.as_buffer().to_pybytes() if scalar.as_buffer() else b""
    return repr(scalar.as_py()) if pa.types.is_floating(type_) else scalar.as_py()
