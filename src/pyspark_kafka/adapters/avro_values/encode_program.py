"""The program by which the kernel encodes rows as Avro: a node for each type of the schema.

A node has eight numbers of 64 bits; offsets in it are in bytes. Nodes are in the order of the
schema, a record before its fields, so that fields are written in the schema's order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import numpy as np

from ...domain.values import data_types as types
from ...domain.values.avro_schema import (
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
from ...domain.values.avro_types import has_members, member_names, number_type, without_null
from ..value_encoding.input_table import fields_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...domain.values.avro_types import AvroTypeOptions
    from ...domain.values.data_types import DataType
    from ..kernels.arrays import Int64Array, UInt8Array
    from ..value_columns.layout import Column

STRIDE: Final = 64

OPERATION: Final = 0
COLUMN: Final = 8
END: Final = 16
"""The number of the first node that is not below this one."""

NULL_BRANCH: Final = 24
"""The branch of null in the union around the type, or -1."""

BRANCH: Final = 32
"""The branch of the type in the union around it, or -1."""

SIZE: Final = 40
"""The bytes of a fixed type, or the number of symbols of an enum."""

SYMBOLS: Final = 48
"""The address of the offsets of an enum's symbols, which precede them."""

BOOL: Final = 0
INT8: Final = 1
INT16: Final = 2
INT32: Final = 3
INT64: Final = 4
MILLIS: Final = 5
"""Microseconds that are written as milliseconds."""

FLOAT: Final = 6
DOUBLE: Final = 7
FLOAT_AS_DOUBLE: Final = 8
BYTES: Final = 9
FIXED: Final = 10
ENUM: Final = 11
DECIMAL_BYTES: Final = 12
DECIMAL_FIXED: Final = 13
ABSENT: Final = 14
"""A field that the rows do not have: null."""

RECORD: Final = 15
ARRAY: Final = 16
MAP: Final = 17
MEMBERS: Final = 18
"""A union as a struct, with a field for each branch."""

_WORDS: Final = STRIDE // 8

_NUMBERS: Final[dict[tuple[types.AtomicType, Kind], int]] = {
    (types.BOOLEAN, Kind.BOOLEAN): BOOL,
    (types.BYTE, Kind.INT): INT8,
    (types.BYTE, Kind.LONG): INT8,
    (types.SHORT, Kind.INT): INT16,
    (types.SHORT, Kind.LONG): INT16,
    (types.INTEGER, Kind.INT): INT32,
    (types.INTEGER, Kind.LONG): INT32,
    (types.LONG, Kind.LONG): INT64,
    (types.DATE, Kind.INT): INT32,
    (types.FLOAT, Kind.FLOAT): FLOAT,
    (types.FLOAT, Kind.DOUBLE): FLOAT_AS_DOUBLE,
    (types.DOUBLE, Kind.DOUBLE): DOUBLE,
    (types.STRING, Kind.STRING): BYTES,
    (types.BINARY, Kind.BYTES): BYTES,
    (types.DAY_TIME_INTERVAL, Kind.LONG): INT64,
}
"""Spark's pairs (``AvroSerializer``), and numbers that are widened."""

_TIMES: Final[dict[tuple[types.AtomicType, object], int]] = {
    (types.TIMESTAMP, None): MILLIS,
    (types.TIMESTAMP, Logical.TIMESTAMP_MILLIS): MILLIS,
    (types.TIMESTAMP, Logical.TIMESTAMP_MICROS): INT64,
    (types.TIMESTAMP_NTZ, None): MILLIS,
    (types.TIMESTAMP_NTZ, Logical.LOCAL_TIMESTAMP_MILLIS): MILLIS,
    (types.TIMESTAMP_NTZ, Logical.LOCAL_TIMESTAMP_MICROS): INT64,
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

    @property
    def containers(self) -> int:
        """How deeply records, arrays and maps are nested, at most."""
        return sum(node[OPERATION // 8] >= RECORD for node in self._nodes)

    def _add(self, avro: AvroType, data_type: DataType, column: int) -> None:
        type_, branch, null_branch = _resolved(avro)
        type_ = self._schema.resolve(type_)
        node = [0] * _WORDS
        node[COLUMN // 8], node[BRANCH // 8], node[NULL_BRANCH // 8] = column, branch, null_branch
        self._nodes.append(node)
        node[OPERATION // 8] = self._operation(type_, data_type, column, node)
        node[END // 8] = len(self._nodes)

    def _operation(self, type_: AvroType, data_type: DataType, column: int, node: list[int]) -> int:
        match data_type, type_:
            case types.StructType(), Record():
                self._add_record(type_, data_type, column)
                return RECORD
            case types.StructType(), Union() if has_members(without_null(type_)):
                self._add_members(type_, data_type, column)
                return MEMBERS
            case types.ArrayType(element), Array(items):
                self._add(items, element, column + 1)
                return ARRAY
            case types.MapType(types.STRING, value), Map(values):
                self._add(values, value, fields_of(self._columns, column + 1)[1])
                return MAP
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
                node[SIZE // 8] = type_.size
                return FIXED
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
        node[BRANCH // 8] = names.index(larger.value)
        node[NULL_BRANCH // 8] = names.index("null") if "null" in names else -1
        return INT64 if larger is Kind.LONG else DOUBLE

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
            node[SIZE // 8] = type_.size
            return DECIMAL_FIXED
        return DECIMAL_BYTES

    def _enumeration(self, type_: Enumeration, node: list[int]) -> int:
        symbols = [symbol.encode() for symbol in type_.symbols]
        offsets = np.cumsum([0, *map(len, symbols)], dtype=np.int64)
        memory = np.frombuffer(offsets.tobytes() + b"".join(symbols), np.uint8)
        self._kept.append(memory)
        node[SIZE // 8], node[SYMBOLS // 8] = len(symbols), memory.ctypes.data
        return ENUM

    def _add_record(self, record: Record, struct: types.StructType, column: int) -> None:
        numbers = fields_of(self._columns, column)
        matched = [_matching(record, field.name) for field in struct.fields]
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
        node[OPERATION // 8], node[COLUMN // 8] = ABSENT, column
        node[BRANCH // 8] = node[NULL_BRANCH // 8] = null_branch
        node[END // 8] = len(self._nodes) + 1
        self._nodes.append(node)

    def _add_members(self, union: Union, struct: types.StructType, column: int) -> None:
        branches = without_null(union)
        names = member_names(branches, self._options)
        if struct.names != names:
            raise ValueError(
                f"{self._place(column)} must have the fields {', '.join(names)} of a union"
            )
        self._nodes[-1][BRANCH // 8] = -1
        numbers = fields_of(self._columns, column)
        for place, branch in enumerate(branches):
            member = len(self._nodes)
            self._add(branch, struct.fields[place].type, numbers[place])
            self._nodes[member][BRANCH // 8] = union.branches.index(branch)

    def _unfit(self, type_: AvroType, data_type: DataType, column: int) -> ValueError:
        return ValueError(
            f"{self._place(column)} of type {data_type} cannot be written as {_shown(type_)}"
        )

    def _place(self, column: int, name: str = "") -> str:
        path = ".".join(filter(None, (self._columns[column].path, name)))
        return f"field '{path}'" if path else "it"


def _resolved(avro: AvroType) -> tuple[AvroType, int, int]:
    """Return the type of a union with null, its branch, and the one of null; or the type itself.

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


def _matching(record: Record, name: str) -> RecordField | None:
    """Return the field of a name, or else the only one of it in another case, as Spark does."""
    exact = [field for field in record.fields if field.name == name]
    other = [field for field in record.fields if field.name.lower() == name.lower()]
    return exact[0] if exact else other[0] if len(other) == 1 else None


def _shown(type_: AvroType) -> str:
    logical = getattr(type_, "logical", None)
    if isinstance(logical, Decimal):
        return f"decimal({logical.precision},{logical.scale})"
    return type_.name if logical is None else f"{type_.name} ({logical.value})"
