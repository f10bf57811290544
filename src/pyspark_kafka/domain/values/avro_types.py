"""The Spark types of Avro schemas, and the Avro schemas of Spark types.

Both are as in Spark's ``SchemaConverters`` (``toSqlType`` and ``toAvroType``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from . import data_types as types
from .avro_schema import (
    MAX_DEPTH,
    Array,
    Decimal,
    Enumeration,
    Fixed,
    Kind,
    Logical,
    Map,
    Primitive,
    Record,
    Union,
)

if TYPE_CHECKING:
    from .avro_schema import AvroSchema, AvroType
    from .data_types import DataType, StructType

MAX_FIELDS: Final = 10_000
"""The fields of a Spark type: named types that are used often multiply."""

VALUE: Final = "value"
"""The only field of the struct that holds values of a schema that is not a record."""


@final
@dataclass(frozen=True, slots=True)
class AvroTypeOptions:
    """Spark's options of the types of unions and of recursive records.

    ``stable_prefix`` is the prefix of the fields of unions, which are named by their types, or
    ``None`` where they are numbered.
    """

    stable_prefix: str | None = None
    recursive_depth: int = -1


NUMBERED: Final = AvroTypeOptions()

_PRIMITIVES: Final = {
    Kind.BOOLEAN: types.BOOLEAN,
    Kind.INT: types.INTEGER,
    Kind.LONG: types.LONG,
    Kind.FLOAT: types.FLOAT,
    Kind.DOUBLE: types.DOUBLE,
    Kind.BYTES: types.BINARY,
    Kind.STRING: types.STRING,
}

_LOGICAL: Final = {
    Logical.DATE: types.DATE,
    Logical.TIMESTAMP_MILLIS: types.TIMESTAMP,
    Logical.TIMESTAMP_MICROS: types.TIMESTAMP,
    Logical.LOCAL_TIMESTAMP_MILLIS: types.TIMESTAMP_NTZ,
    Logical.LOCAL_TIMESTAMP_MICROS: types.TIMESTAMP_NTZ,
}
"""Other logical types are read as their underlying types, as Spark does."""

_NUMBERS: Final = {
    frozenset({Kind.INT, Kind.LONG}): types.LONG,
    frozenset({Kind.FLOAT, Kind.DOUBLE}): types.DOUBLE,
}


def struct_of(schema: AvroSchema, options: AvroTypeOptions = NUMBERED) -> StructType:
    """Return the type of a schema's values: a struct of one field unless they are structs.

    :raises ValueError: if Spark has no such type.
    """
    found = _Types(schema, options).type_of(schema.type, {}, "")
    if isinstance(found, types.StructType):
        return found
    if found is None:
        raise ValueError("it has no values but null")
    return types.StructType((types.StructField(VALUE, found),))


def is_wrapped(schema: AvroSchema) -> bool:
    """Return whether values are wrapped in a field, because they are not structs."""
    root = schema.type
    if isinstance(root, Union):
        branches = without_null(root)
        one = branches[0] if len(branches) == 1 else None
        return not isinstance(one, Record) and not has_members(branches)
    return not isinstance(root, Record)


def without_null(union: Union) -> tuple[AvroType, ...]:
    """Return the branches of a union except null."""
    return tuple(branch for branch in union.branches if branch.name != "null")


def number_type(branches: tuple[AvroType, ...]) -> types.AtomicType | None:
    """Return the type of a union of ``int`` and ``long``, or of ``float`` and ``double``."""
    kinds = frozenset(one.kind for one in branches if isinstance(one, Primitive))
    return _NUMBERS.get(kinds) if len(branches) == 2 else None


def has_members(branches: tuple[AvroType, ...]) -> bool:
    """Return whether a union of these branches is a struct with a field for each."""
    return len(branches) > 1 and number_type(branches) is None


def member_names(branches: tuple[AvroType, ...], options: AvroTypeOptions) -> tuple[str, ...]:
    """Return the names of the fields of a union.

    :raises ValueError: if two names differ in case only.
    """
    if options.stable_prefix is None:
        return tuple(f"member{number}" for number in range(len(branches)))
    short = (branch.name.rpartition(".")[2] for branch in branches)
    names = tuple(f"{options.stable_prefix}{name}" for name in short)
    if len({name.lower() for name in names}) != len(names):
        raise ValueError(f"two fields of a union have one name: {', '.join(names)}")
    return names


class _Types:
    """Builds a type; ``None`` is a type that is dropped: of nulls only, or too deep."""

    def __init__(self, schema: AvroSchema, options: AvroTypeOptions) -> None:
        self._schema = schema
        self._options = options
        self._fields = 0

    def type_of(self, type_: AvroType, depths: dict[str, int], path: str) -> DataType | None:
        # Names have no dots. Named types are used in each other, so the text's depth is no limit.
        if path.count(".") > MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
        match self._schema.resolve(type_):
            case Record() as record:
                return self._record(record, depths, path)
            case Union() as union:
                return self._union(union, depths, path)
            case Array(items):
                element = self.type_of(items, depths, f"{path}.element")
                return element and types.ArrayType(element)
            case Map(values):
                value = self.type_of(values, depths, f"{path}.value")
                return value and types.MapType(types.STRING, value)
            case Enumeration():
                return types.STRING
            case Primitive() | Fixed() as atom:
                return _atomic_type(atom, path)
        raise AssertionError(type_)  # pragma: no cover

    def _record(self, record: Record, depths: dict[str, int], path: str) -> DataType | None:
        depth = depths.get(record.name, 0)
        if depth and self._options.recursive_depth <= 0:
            raise ValueError(
                f"{_place(path)} contains its own record {record.name}; set the option "
                "'recursiveFieldMaxDepth' to 1 or more to drop such fields, or read other fields"
            )
        if depth and depth >= self._options.recursive_depth:
            return None
        inner = {**depths, record.name: depth + 1}
        names = tuple(field.name for field in record.fields)
        return self._struct(names, tuple(field.type for field in record.fields), inner, path)

    def _union(self, union: Union, depths: dict[str, int], path: str) -> DataType | None:
        branches = without_null(union)
        if not branches:
            return None
        if len(branches) == 1:
            return self.type_of(branches[0], depths, path)
        number = number_type(branches)
        if number is not None:
            return number
        return self._struct(member_names(branches, self._options), branches, depths, path)

    def _struct(
        self,
        names: tuple[str, ...],
        members: tuple[AvroType, ...],
        depths: dict[str, int],
        path: str,
    ) -> StructType:
        self._fields += len(names)
        if self._fields > MAX_FIELDS:
            raise ValueError(f"it has more than {MAX_FIELDS} fields")
        fields = []
        for name, member in zip(names, members, strict=True):
            found = self.type_of(member, depths, f"{path}.{name}")
            if found is not None:
                fields.append(types.StructField(name, found))
        return types.StructType(tuple(fields))


def _atomic_type(type_: Primitive | Fixed, path: str) -> DataType | None:
    logical = type_.logical
    if isinstance(logical, Decimal):
        if logical.precision > types.MAX_PRECISION:
            raise ValueError(
                f"{_place(path)} is a decimal of {logical.precision} digits; Spark has at most "
                f"{types.MAX_PRECISION}"
            )
        return types.DecimalType(logical.precision, logical.scale)
    if isinstance(type_, Fixed):
        return types.BINARY
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    return _PRIMITIVES.get(type_.kind)


def _place(path: str) -> str:
    return f"field '{path.removeprefix('.')}'" if path else "it"


TOP_LEVEL: Final = "topLevelRecord"
"""The name of the record of a whole row."""

_ATOMIC: Final[dict[types.AtomicType, Any]] = {
    types.BOOLEAN: "boolean",
    types.BYTE: "int",
    types.SHORT: "int",
    types.INTEGER: "int",
    types.LONG: "long",
    types.FLOAT: "float",
    types.DOUBLE: "double",
    types.STRING: "string",
    types.BINARY: "bytes",
    types.DATE: {"type": "int", "logicalType": "date"},
    types.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros"},
    types.TIMESTAMP_NTZ: {"type": "long", "logicalType": "local-timestamp-micros"},
    types.DAY_TIME_INTERVAL: {
        "type": "long",
        "spark.sql.catalyst.type": types.DAY_TIME_INTERVAL.name,
    },
}


def derived_schema(struct: types.StructType) -> str:
    """Return the schema of rows of a type; every field may be null."""
    return json.dumps(_record(struct, TOP_LEVEL, ""), ensure_ascii=False, separators=(",", ":"))


def _type(data_type: types.DataType, name: str, namespace: str) -> Any:
    match data_type:
        case types.AtomicType():
            return _ATOMIC[data_type]
        case types.DecimalType(precision, scale):
            return {
                "type": "fixed",
                "name": "fixed",
                "namespace": f"{namespace}.{name}",
                "size": _decimal_bytes(precision),
                "logicalType": "decimal",
                "precision": precision,
                "scale": scale,
            }
        case types.ArrayType(element):
            return {"type": "array", "items": _nullable(element, name, namespace)}
        case types.MapType(_, value):
            return {"type": "map", "values": _nullable(value, name, namespace)}
    return _record(data_type, name, namespace)


def _nullable(data_type: types.DataType, name: str, namespace: str) -> list[Any]:
    return [_type(data_type, name, namespace), "null"]


def _record(struct: types.StructType, name: str, namespace: str) -> dict[str, Any]:
    inner = f"{namespace}.{name}" if namespace else name
    fields = [
        {"name": field.name, "type": _nullable(field.type, field.name, inner)}
        for field in struct.fields
    ]
    named = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"type": "record", **named, "fields": fields}


def _decimal_bytes(precision: int) -> int:
    """Return the bytes of the smallest signed number that has ``precision`` digits."""
    size = 1
    while 2 ** (8 * size - 1) < 10**precision:
        size += 1
    return size
