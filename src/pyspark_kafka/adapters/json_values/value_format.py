"""The format ``json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...domain.errors import OptionsError
from ...domain.values.data_types import parse_struct
from ...ports.values.value_format import ValueFormat
from .decoder import JsonDecoder
from .encoder import JsonEncoder
from .json_options import parse_json_options

if TYPE_CHECKING:
    from ...domain.values.data_types import StructType
    from ...domain.values.registry import Schema
    from ...domain.values.value_options import ValueOptions


def _data_type(options: ValueOptions, _schema: Schema | None) -> StructType:
    if options.schema is None:
        name = f"{options.column}Schema"
        raise OptionsError([f"'{name}' is needed to read JSON: DDL such as 'a int, b string'"])
    # So that the driver refuses them, before any task runs.
    parse_json_options(options)
    try:
        return parse_struct(options.schema)
    except ValueError as error:
        raise OptionsError([f"'{options.column}Schema' cannot be used: {error}"]) from None


def _decoder(options: ValueOptions, _schema: Schema | None, data_type: StructType) -> JsonDecoder:
    return JsonDecoder(data_type, parse_json_options(options))


def _encoder(options: ValueOptions, _schema: Schema | None, data_type: StructType) -> JsonEncoder:
    return JsonEncoder(options, data_type)


VALUE_FORMAT: Final = ValueFormat(_data_type, _decoder, _encoder)
