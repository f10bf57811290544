"""The columns of a read with typed values."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from ..errors import OptionsError
from ..reading.records import COLUMNS, Projection
from .data_types import (
    BINARY,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from .registry import Schema, SchemaType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .data_types import DataType
    from .registry import SubjectVersion
    from .value_options import ValueOptions

DEFAULT_CORRUPT_RECORD: Final = "_corrupt_record"
"""The default of ``spark.sql.columnNameOfCorruptRecord``."""

RECORD_TYPES: Final[Mapping[str, DataType]] = {
    "key": BINARY,
    "value": BINARY,
    "topic": STRING,
    "partition": INTEGER,
    "offset": LONG,
    "timestamp": TIMESTAMP,
    "timestampType": INTEGER,
    "headers": ArrayType(StructType((StructField("key", STRING), StructField("value", BINARY)))),
}
"""The types of the columns of records."""

LETTER_COLUMNS: Final = frozenset(
    {"key", "value", "topic", "partition", "offset", "timestamp", "headers"}
)
"""The columns of records that a dead letter is made from."""


@final
@dataclass(frozen=True, slots=True)
class TypedColumn:
    """How a column, ``key`` or ``value``, is decoded, and to what.

    ``data_type`` is the type of the column in the output. One of its fields may hold the text of
    corrupt records: ``corrupt_record`` is its name. ``version`` is the registry's schema with which
    the column is read, unless the options have the schema.
    """

    options: ValueOptions
    data_type: StructType
    version: SubjectVersion | None = None
    corrupt_record: str | None = None

    @property
    def name(self) -> str:
        """The column of records."""
        return self.options.column

    @property
    def schema(self) -> Schema | None:
        """The registry's schema, or the text of a Protobuf file."""
        if self.version is not None:
            return self.version.schema
        return text_schema(self.options)

    @property
    def decoded_type(self) -> StructType:
        """The type that the decoder returns: without the text of corrupt records."""
        kept = tuple(one for one in self.data_type.fields if one.name != self.corrupt_record)
        return StructType(kept)


class ColumnKind(enum.Enum):
    """The origin of a column of the output."""

    RECORD = "a column of the record"
    STRUCT = "a decoded column"
    FIELD = "a field of a decoded column"
    ERROR = "what is wrong with a value"
    BYTES = "the bytes of a value that cannot be decoded"


@final
@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the output, made from the column ``source`` of records."""

    name: str
    kind: ColumnKind
    source: str
    data_type: DataType


@final
@dataclass(frozen=True, slots=True)
class TypedSchema:
    """The columns of the output in order, and how ``key`` and ``value`` are decoded."""

    columns: tuple[OutputColumn, ...]
    typed: tuple[TypedColumn, ...]

    def projection(self, *, has_letters: bool) -> Projection:
        """Return the columns to read: those of the output, and what decoding needs.

        Errors name the offset, and dead letters are whole records.
        """
        needed = {column.source for column in self.columns} | {"offset"}
        needed |= {one.name for one in self.typed}
        if any(one.options.framing.uses_headers for one in self.typed):
            needed.add("headers")
        if has_letters:
            needed |= LETTER_COLUMNS
        return Projection(tuple(column for column in COLUMNS if column in needed))

    @property
    def record_columns(self) -> frozenset[str]:
        """The names of columns that are the records' own."""
        return frozenset(one.name for one in self.columns if one.kind is ColumnKind.RECORD)


def text_schema(options: ValueOptions) -> Schema | None:
    """Return the schema of the options as a registry has it, if they have Protobuf's language."""
    if options.format == "protobuf" and options.schema is not None:
        return Schema(SchemaType.PROTOBUF, options.schema)
    return None


def with_corrupt_record(options: ValueOptions, data_type: StructType) -> TypedColumn:
    """Return a column whose struct has the field for corrupt records, if it is to have one.

    A schema that has such a field places it; otherwise it is the last one.
    """
    name = options.corrupt_record_column
    chosen = name or DEFAULT_CORRUPT_RECORD
    field = StructField(chosen, STRING)
    if options.format == "json" and field in data_type.fields:
        return TypedColumn(options, data_type, corrupt_record=chosen)
    if name is None:
        return TypedColumn(options, data_type)
    if name in data_type.names:
        raise OptionsError([f"columnNameOfCorruptRecord '{name}' must be a string in the schema"])
    return TypedColumn(options, StructType((*data_type.fields, field)), corrupt_record=name)


def typed_schema(projection: Projection, typed: Sequence[TypedColumn]) -> TypedSchema:
    """Return the columns of a read: decoded ones in the places of ``key`` and ``value``.

    :raises OptionsError: if two columns have the same name, in any case: Spark's names are not
        case-sensitive.
    """
    by_name = {one.name: one for one in typed}
    columns: list[OutputColumn] = []
    for name in projection.columns:
        column = by_name.get(name)
        if column is None:
            columns.append(OutputColumn(name, ColumnKind.RECORD, name, RECORD_TYPES[name]))
        else:
            columns += _outputs(column)
    _refuse_clashes(columns)
    return TypedSchema(tuple(columns), tuple(typed))


def _outputs(column: TypedColumn) -> Iterable[OutputColumn]:
    name = column.name
    if column.options.flatten:
        for field in column.data_type.fields:
            yield OutputColumn(field.name, ColumnKind.FIELD, name, field.type)
    else:
        yield OutputColumn(name, ColumnKind.STRUCT, name, column.data_type)
    if column.options.include_errors:
        yield OutputColumn(f"{name}Error", ColumnKind.ERROR, name, STRING)
        yield OutputColumn(f"{name}Bytes", ColumnKind.BYTES, name, BINARY)


def _refuse_clashes(columns: Sequence[OutputColumn]) -> None:
    counts = Counter(column.name.lower() for column in columns)
    clashing = [column.name for column in columns if counts[column.name.lower()] > 1]
    if clashing:
        names = ", ".join(f"'{name}'" for name in dict.fromkeys(clashing))
        problem = (
            f"several columns would have the name {names}: leave fields out of the schema, leave "
            "columns out ('includeOffset' and others), or do not flatten"
        )
        raise OptionsError([problem])


def select(schema: TypedSchema, requested: StructType) -> TypedSchema:
    """Return a schema with a user's columns and fields, in the user's order.

    :raises OptionsError: with the columns and fields that the schema does not have in that type.
    """
    available = {column.name: column for column in schema.columns}
    problems: list[str] = []
    columns: list[OutputColumn] = []
    for field in requested.fields:
        column = available.get(field.name)
        if column is None:
            known = ", ".join(available)
            problems.append(f"the schema's column '{field.name}' is not one of {known}")
        elif column.kind is ColumnKind.RECORD and field.type != column.data_type:
            problems.append(_mismatch(field.name, field.type, column.data_type))
        else:
            problems += _mismatches(field.name, field.type, column.data_type)
            columns.append(replace(column, data_type=field.type))
    typed = tuple(
        selected for one in schema.typed if (selected := _selected(one, columns)) is not None
    )
    problems += [
        f"the schema needs a field of '{one.name}' in addition to '{one.corrupt_record}'"
        for one in typed
        if not one.decoded_type.fields
    ]
    if problems:
        raise OptionsError(problems)
    return TypedSchema(tuple(columns), typed)


def _selected(column: TypedColumn, columns: Sequence[OutputColumn]) -> TypedColumn | None:
    """Return a column with the fields that are in the output; ``None`` if it is not decoded."""
    outputs = [one for one in columns if one.source == column.name]
    if not outputs:
        return None
    fields = tuple(
        StructField(one.name, one.data_type) for one in outputs if one.kind is ColumnKind.FIELD
    )
    structs = [one.data_type for one in outputs if one.kind is ColumnKind.STRUCT]
    selected = StructType(fields) if fields else next(iter(structs), column.data_type)
    # With errors only, the values are decoded as they are by default.
    return replace(column, data_type=selected) if isinstance(selected, StructType) else column


def _mismatches(path: str, requested: DataType, actual: DataType) -> list[str]:
    """Return where a type is not a part of another one: fewer fields, in any order."""
    match requested, actual:
        case StructType(fields), StructType():
            types = {field.name: field.type for field in actual.fields}
            return [
                problem
                for field in fields
                for problem in _field_mismatches(f"{path}.{field.name}", field, types)
            ]
        case ArrayType(), ArrayType():
            return _mismatches(f"{path}.element", requested.element, actual.element)
        case MapType(), MapType():
            return _mismatches(f"{path}.key", requested.key, actual.key) + _mismatches(
                f"{path}.value", requested.value, actual.value
            )
        case _ if requested == actual:
            return []
    return [_mismatch(path, requested, actual)]


def _mismatch(path: str, requested: DataType, actual: DataType) -> str:
    return f"the schema's field '{path} {requested}' has the type {actual} in the records"


def _field_mismatches(path: str, field: StructField, types: Mapping[str, DataType]) -> list[str]:
    if field.name not in types:
        return [f"the schema's field '{path}' is not in the schema of the records"]
    return _mismatches(path, field.type, types[field.name])
