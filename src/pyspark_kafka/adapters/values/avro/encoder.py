"""Encoding struct columns as Avro, byte for byte as Spark's ``to_avro``.

The entries of maps are in the order of the row, where Java has the order of its hash table. Texts
are written as they are: Java replaces what is not UTF-8 in the keys of maps, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from ....domain.values import data_types as types
from ....domain.values.avro_schema import (
    Array,
    AvroSchema,
    AvroType,
    Decimal,
    Enumeration,
    Fixed,
    Kind,
    Logical,
    Map,
    Primitive,
    Record,
    RecordField,
    Union,
)
from ....domain.values.avro_types import (
    NUMBERED,
    derived_schema,
    has_members,
    member_names,
    number_type,
    without_null,
)
from ....domain.values.registry import Schema, SchemaType
from ....ports.values.value_format import ValueEncoder
from ....ports.values.value_types import arrow_type
from ..columns.layout import columns_of
from ..encoding.input_columns import InputColumns
from ..encoding.row_encoder import RowEncoder
from . import encode_kernel as layout
from .decoder import parse_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from ....domain.values.avro_types import AvroTypeOptions
    from ....domain.values.data_types import DataType, StructType
    from ...kernels.arrays import Int64Array, UInt8Array
    from ..columns.layout import Column

_WORDS: Final = layout.STRIDE // 8

_NUMBERS: Final[dict[tuple[types.AtomicType, Kind], int]] = {
    (types.BOOLEAN, Kind.BOOLEAN): layout.BOOL,
    (types.BYTE, Kind.INT): layout.INT8,
    (types.BYTE, Kind.LONG): layout.INT8,
    (types.SHORT, Kind.INT): layout.INT16,
    (types.SHORT, Kind.LONG): layout.INT16,
    (types.INTEGER, Kind.INT): layout.INT32,
    (types.INTEGER, Kind.LONG): layout.INT32,
    (types.LONG, Kind.LONG): layout.INT64,
    (types.DATE, Kind.INT): layout.INT32,
    (types.FLOAT, Kind.FLOAT): layout.FLOAT,
    (types.FLOAT, Kind.DOUBLE): layout.FLOAT_AS_DOUBLE,
    (types.DOUBLE, Kind.DOUBLE): layout.DOUBLE,
    (types.STRING, Kind.STRING): layout.BYTES,
    (types.BINARY, Kind.BYTES): layout.BYTES,
    (types.DAY_TIME_INTERVAL, Kind.LONG): layout.INT64,
}
"""Spark's pairs (``AvroSerializer``), and numbers that are widened."""

_TIMES: Final[dict[tuple[types.AtomicType, object], int]] = {
    (types.TIMESTAMP, None): layout.MILLIS,
    (types.TIMESTAMP, Logical.TIMESTAMP_MILLIS): layout.MILLIS,
    (types.TIMESTAMP, Logical.TIMESTAMP_MICROS): layout.INT64,
    (types.TIMESTAMP_NTZ, None): layout.MILLIS,
    (types.TIMESTAMP_NTZ, Logical.LOCAL_TIMESTAMP_MILLIS): layout.MILLIS,
    (types.TIMESTAMP_NTZ, Logical.LOCAL_TIMESTAMP_MICROS): layout.INT64,
}
"""Without a logical type, a long has milliseconds, as in Spark."""


@final
class EncodeProgram:
    """The program for rows of a type and a schema, with the memory that it points to."""

    def __init__(
        self,
        schema: AvroSchema,
        struct: types.StructType,
        columns: Sequence[Column],
        options: AvroTypeOptions,
    ) -> None:
        """Compile a schema.

        :raises ValueError: if rows of the type cannot have the schema, with the field.
        """
        self._schema = schema
        self._columns = columns
        self._options = options
        self._nodes: list[list[int]] = []
        self._kept: list[UInt8Array] = []
        root, _, _ = _resolved(schema.type)
        if not isinstance(root, Record):
            raise ValueError("it is not a record")  # noqa: TRY004  # but of a value
        self.record_name = root.name
        self._add(schema.type, struct, 0)
        self.words: Int64Array = np.array(self._nodes, np.int64)

    def _add(self, avro: AvroType, data_type: DataType, column: int) -> None:
        type_, branch, null_branch = _resolved(avro)
        type_ = self._schema.resolve(type_)
        node = [0] * _WORDS
        node[layout.COLUMN // 8], node[layout.BRANCH // 8], node[layout.NULL_BRANCH // 8] = (
            column,
            branch,
            null_branch,
        )
        self._nodes.append(node)
        node[layout.OPERATION // 8] = self._operation(type_, data_type, column, node)
        node[layout.END // 8] = len(self._nodes)

    def _operation(self, type_: AvroType, data_type: DataType, column: int, node: list[int]) -> int:
        match data_type, type_:
            case types.StructType(), Record():
                self._add_record(type_, data_type, column)
                return layout.RECORD
            case types.StructType(), Union() if has_members(without_null(type_)):
                self._add_members(type_, data_type, column)
                return layout.MEMBERS
            case types.ArrayType(element), Array(items):
                self._add(items, element, column + 1)
                return layout.ARRAY
            case types.MapType(types.STRING, value), Map(values):
                self._add(values, value, self._columns[column + 1].children[1])
                return layout.MAP
        return self._scalar(type_, data_type, column, node)

    def _scalar(self, type_: AvroType, data_type: DataType, column: int, node: list[int]) -> int:
        match data_type, type_:
            case types.AtomicType(), Union():
                return self._number(type_, data_type, column, node)
            case types.DecimalType(), Primitive() | Fixed():
                return self._decimal(type_, data_type, column, node)
            case types.STRING, Enumeration():
                return self._enumeration(type_, node)
            case types.BINARY, Fixed():
                node[layout.SIZE // 8] = type_.size
                return layout.FIXED
            case types.AtomicType(), Primitive():
                return self._atomic(type_, data_type, column)
        raise self._unfit(type_, data_type, column)

    def _atomic(self, type_: Primitive, data_type: types.AtomicType, column: int) -> int:
        if data_type in {types.TIMESTAMP, types.TIMESTAMP_NTZ} and type_.kind is Kind.LONG:
            found = _TIMES.get((data_type, type_.logical))
        else:
            found = _NUMBERS.get((data_type, type_.kind))
        if found is None:
            raise self._unfit(type_, data_type, column)
        return found

    def _number(
        self, union: Union, data_type: types.AtomicType, column: int, node: list[int]
    ) -> int:
        """Return the operation of a union of numbers, which are written as the larger one."""
        branches = without_null(union)
        if number_type(branches) != data_type:
            raise self._unfit(union, data_type, column)
        larger = Kind.LONG if data_type == types.LONG else Kind.DOUBLE
        names = [branch.name for branch in union.branches]
        node[layout.BRANCH // 8] = names.index(larger.value)
        node[layout.NULL_BRANCH // 8] = names.index("null") if "null" in names else -1
        return layout.INT64 if larger is Kind.LONG else layout.DOUBLE

    def _decimal(
        self,
        type_: Primitive | Fixed,
        data_type: types.DecimalType,
        column: int,
        node: list[int],
    ) -> int:
        if type_.logical != Decimal(data_type.precision, data_type.scale):
            raise self._unfit(type_, data_type, column)
        if isinstance(type_, Fixed):
            node[layout.SIZE // 8] = type_.size
            return layout.DECIMAL_FIXED
        return layout.DECIMAL_BYTES

    def _enumeration(self, type_: Enumeration, node: list[int]) -> int:
        symbols = [symbol.encode() for symbol in type_.symbols]
        offsets = np.cumsum([0, *map(len, symbols)], dtype=np.int64)
        memory = np.frombuffer(offsets.tobytes() + b"".join(symbols), np.uint8)
        self._kept.append(memory)
        node[layout.SIZE // 8], node[layout.SYMBOLS // 8] = len(symbols), memory.ctypes.data
        return layout.ENUM

    def _add_record(self, record: Record, struct: types.StructType, column: int) -> None:
        numbers = self._columns[column].children
        matched = [types.find_named(record.fields, field.name) for field in struct.fields]
        for field, found in zip(struct.fields, matched, strict=True):
            if found is None:
                raise ValueError(f"{self._place(column, field.name)} is not in the schema")
        names = [found.name for found in matched if found is not None]
        if len(set(names)) != len(names):
            raise ValueError(f"{self._place(column)} has two fields of one name in the schema")
        for one in record.fields:
            if one.name in names:
                place = names.index(one.name)
                self._add(one.type, struct.fields[place].type, numbers[place])
            else:
                self._add_absent(one, column)

    def _add_absent(self, field: RecordField, column: int) -> None:
        _, _, null_branch = _resolved(field.type)
        is_null = isinstance(field.type, Primitive) and field.type.kind is Kind.NULL
        if null_branch < 0 and not is_null:
            raise ValueError(
                f"{self._place(column, field.name)} of the schema is missing, and must not be null"
            )
        node = [0] * _WORDS
        node[layout.OPERATION // 8], node[layout.COLUMN // 8] = layout.ABSENT, column
        node[layout.BRANCH // 8] = node[layout.NULL_BRANCH // 8] = null_branch
        node[layout.END // 8] = len(self._nodes) + 1
        self._nodes.append(node)

    def _add_members(self, union: Union, struct: types.StructType, column: int) -> None:
        branches = without_null(union)
        names = member_names(branches, self._options)
        if struct.names != names:
            raise ValueError(
                f"{self._place(column)} must have the fields {', '.join(names)} of a union"
            )
        self._nodes[-1][layout.BRANCH // 8] = -1
        numbers = self._columns[column].children
        for place, branch in enumerate(branches):
            member = len(self._nodes)
            self._add(branch, struct.fields[place].type, numbers[place])
            self._nodes[member][layout.BRANCH // 8] = union.branches.index(branch)

    def _unfit(self, type_: AvroType, data_type: DataType, column: int) -> ValueError:
        return ValueError(
            f"{self._place(column)} of type {data_type} cannot be written as {_shown(type_)}"
        )

    def _place(self, column: int, name: str = "") -> str:
        path = ".".join(filter(None, (self._columns[column].path, name)))
        return f"field '{path}'" if path else "it"


def _resolved(avro: AvroType) -> tuple[AvroType, int, int]:
    """Return the type of a union with null, its branch, and null's branch; or the type itself.

    A union of several types stays one.
    """
    if not isinstance(avro, Union):
        return avro, -1, -1
    names = [branch.name for branch in avro.branches]
    null_branch = names.index("null") if "null" in names else -1
    others = without_null(avro)
    if len(others) == 1:
        return others[0], avro.branches.index(others[0]), null_branch
    return avro, -1, null_branch


def _shown(type_: AvroType) -> str:
    logical = getattr(type_, "logical", None)
    if isinstance(logical, Decimal):
        return f"decimal({logical.precision},{logical.scale})"
    return type_.name if logical is None else f"{type_.name} ({logical.value})"


@final
class AvroEncoder(ValueEncoder):
    """Encodes rows of one type with one schema."""

    def __init__(
        self,
        column: str,
        schema: Schema | None,
        data_type: StructType,
        options: AvroTypeOptions = NUMBERED,
    ) -> None:
        """Take a schema, or derive it from the type; ``column`` is for error messages.

        :raises ValueError: if rows of the type cannot have the schema.
        """
        self._schema = schema or Schema(SchemaType.AVRO, derived_schema(data_type))
        self._columns = columns_of(arrow_type(data_type))
        parsed = parse_schema(self._schema)
        self._program = EncodeProgram(parsed, data_type, self._columns, options)
        self._rows = RowEncoder(layout.encode_avro, self._program.words, self._columns, column)

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def record_name(self) -> str | None:
        return self._program.record_name

    def encode(self, column: pa.Array[Any], prefix: bytes = b"") -> pa.Array[Any]:
        table = InputColumns(self._columns, column)
        return self._rows.encode(column, table.address, prefix)
