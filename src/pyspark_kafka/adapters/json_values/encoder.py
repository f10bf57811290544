"""Encoding struct columns as JSON, byte for byte as Spark's ``to_json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from ...domain.errors import OptionsError
from ...domain.values.registry import Schema, SchemaType
from ...ports.values.value_format import ValueEncoder
from ...ports.values.value_types import arrow_type
from ..value_columns.layout import columns_of
from ..value_encoding.input_columns import InputColumns
from ..value_encoding.row_encoder import RowEncoder
from ..value_encoding.time_zones import NOT_A_ZONE, find_zone
from .encode_kernel import encode_json
from .encode_program import EncodeProgram, EncodeSettings
from .json_schema import json_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from ...domain.values.data_types import StructType
    from ...domain.values.value_options import ValueOptions


@final
class JsonEncoder(ValueEncoder):
    """Encodes rows of one type as objects.

    Timestamps are in the time zone of the option ``timeZone``, by default in the column's: Spark
    gives columns the time zone of the session.
    """

    def __init__(self, options: ValueOptions, data_type: StructType) -> None:
        """Take the type of rows.

        :raises OptionsError: if a map's keys have no text, or an option is not supported.
        """
        settings = dict(options.settings)
        self._columns = columns_of(arrow_type(data_type))
        self._program = EncodeProgram(self._columns, EncodeSettings.parse(settings))
        self._rows = RowEncoder(
            encode_json,
            self._program.words,
            self._program.scratch_bytes,
            self._columns,
            options.column,
        )
        self._data_type = data_type
        self._time_zone = settings.get("timezone")
        if self._time_zone is not None and find_zone(self._time_zone) is None:
            raise OptionsError([f"timeZone {self._time_zone!r} {NOT_A_ZONE}"])

    @property
    def schema(self) -> Schema:
        return Schema(SchemaType.JSON, json_schema(self._data_type))

    def encode(self, column: pa.Array[Any], prefix: bytes = b"") -> pa.Array[Any]:
        table = InputColumns(self._columns, column, has_local_times=True, time_zone=self._time_zone)
        return self._rows.encode(column, table.address, prefix)
