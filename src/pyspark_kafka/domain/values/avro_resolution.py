"""How values of a writer's schema are read as a reader's schema into a Spark type.

The rules are the ones of the specification (1.12, "Schema Resolution"), as ``Resolver`` of Java
reads them, and those of ``AvroDeserializer`` of Spark for the types. As in Java, what does not fit
is an error of the values that have it, so that other branches of a union can be read.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, final

from . import data_types as types
from .avro_defaults import encode_default
from .avro_schema import (
    Array,
    AvroSchema,
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
    short_name,
)
from .avro_types import (
    NUMBERED,
    VALUE,
    has_members,
    is_wrapped,
    member_names,
    number_type,
    without_null,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .avro_schema import AvroType
    from .avro_types import AvroTypeOptions
    from .data_types import DataType, StructType

MAX_NODES: Final = 100_000
"""The nodes of a tree: unions in records in unions multiply."""


class Conversion(enum.Enum):
    """What becomes of a primitive value: the type of the column, and what is done on the way."""

    BOOLEAN = enum.auto()
    INT32 = enum.auto()
    INT64 = enum.auto()
    MICROS_OF_MILLIS = enum.auto()
    MICROS_OF_DAYS = enum.auto()
    DATE_OF_MILLIS = enum.auto()
    FLOAT = enum.auto()
    DOUBLE = enum.auto()
    DOUBLE_OF_FLOAT = enum.auto()
    """An integer is rounded to ``float`` first."""

    STRING = enum.auto()
    BINARY = enum.auto()


@final
@dataclass(frozen=True, slots=True)
class Skip:
    """Pass over a value of a type of a schema."""

    type: AvroType
    schema: AvroSchema


@final
@dataclass(frozen=True, slots=True)
class ReadNull:
    """A null, which takes no bytes."""


@final
@dataclass(frozen=True, slots=True)
class ReadPrimitive:
    """A primitive value of the writer."""

    kind: Kind
    conversion: Conversion


@final
@dataclass(frozen=True, slots=True)
class ReadFixed:
    """Bytes of a fixed number, as a binary."""

    size: int


@final
@dataclass(frozen=True, slots=True)
class ReadDecimal:
    """A decimal of at most ``precision`` digits, in ``size`` bytes or with a length before them.

    The column has ``added_scale`` more digits behind the point.
    """

    size: int | None
    precision: int
    added_scale: int = 0


@final
@dataclass(frozen=True, slots=True)
class ReadEnumeration:
    """A symbol, by the writer's numbers; ``None`` is one that the reader does not have."""

    symbols: tuple[str | None, ...]


@final
@dataclass(frozen=True, slots=True)
class Step:
    """A value in a record: ``field`` is its place in the struct, or ``None`` if it is skipped."""

    name: str
    field: int | None
    node: Node


@final
@dataclass(frozen=True, slots=True)
class ReadRecord:
    """The fields of the writer in their order, then the defaults of fields that it lacks."""

    steps: tuple[Step, ...]


@final
@dataclass(frozen=True, slots=True)
class ReadArray:
    """An array, whose elements are written as ``items`` of a schema."""

    element: Node
    items: AvroType
    schema: AvroSchema


@final
@dataclass(frozen=True, slots=True)
class ReadMap:
    """A map."""

    value: Node


@final
@dataclass(frozen=True, slots=True)
class ReadUnion:
    """A value behind the number of its branch."""

    branches: tuple[Node, ...]


@final
@dataclass(frozen=True, slots=True)
class ReadMember:
    """A value of the reader's union, which is a struct: one field is set, all others are null."""

    step: Step


@final
@dataclass(frozen=True, slots=True)
class ReadDefault:
    """The reader's default, and how to read it."""

    data: bytes
    node: Node


@final
@dataclass(frozen=True, slots=True)
class Mismatch:
    """A value that cannot be read: the path of the reader's field, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"field '{self.path}': {self.reason}" if self.path else self.reason


Node: TypeAlias = (
    Skip
    | ReadNull
    | ReadPrimitive
    | ReadFixed
    | ReadDecimal
    | ReadEnumeration
    | ReadRecord
    | ReadArray
    | ReadMap
    | ReadUnion
    | ReadMember
    | ReadDefault
    | Mismatch
)


def resolve(
    writer: AvroSchema,
    reader: AvroSchema,
    wanted: StructType,
    options: AvroTypeOptions = NUMBERED,
) -> Node:
    """Return how to read the wanted fields.

    :raises ValueError: if the tree is too large.
    """
    if is_wrapped(reader):
        writer, reader = _wrapped(writer), _wrapped(reader)
    return _Resolver(writer, reader, options).resolve(writer.type, reader.type, wanted, "")


def mismatches(node: Node) -> Iterator[Mismatch]:
    """Yield what cannot be read, in a tree."""
    match node:
        case Mismatch():
            yield node
        case ReadRecord(steps):
            for step in steps:
                yield from mismatches(step.node)
        case ReadUnion(branches):
            for branch in branches:
                yield from mismatches(branch)
        case ReadMember(step):
            yield from mismatches(step.node)
        case ReadArray(below, _, _) | ReadMap(below) | ReadDefault(_, below):
            yield from mismatches(below)
        case _:
            pass


_PROMOTIONS: Final = {
    Kind.INT: {Kind.LONG, Kind.FLOAT, Kind.DOUBLE},
    Kind.LONG: {Kind.FLOAT, Kind.DOUBLE},
    Kind.FLOAT: {Kind.DOUBLE},
    Kind.STRING: {Kind.BYTES},
    Kind.BYTES: {Kind.STRING},
}

_CONVERSIONS: Final[dict[tuple[Kind, DataType], Conversion]] = {
    (Kind.BOOLEAN, types.BOOLEAN): Conversion.BOOLEAN,
    (Kind.INT, types.INTEGER): Conversion.INT32,
    (Kind.INT, types.DATE): Conversion.INT32,
    (Kind.INT, types.LONG): Conversion.INT64,
    (Kind.INT, types.DOUBLE): Conversion.DOUBLE,
    (Kind.LONG, types.LONG): Conversion.INT64,
    (Kind.FLOAT, types.FLOAT): Conversion.FLOAT,
    (Kind.FLOAT, types.DOUBLE): Conversion.DOUBLE_OF_FLOAT,
    (Kind.DOUBLE, types.DOUBLE): Conversion.DOUBLE,
    (Kind.STRING, types.STRING): Conversion.STRING,
    (Kind.BYTES, types.BINARY): Conversion.BINARY,
}
"""By the reader's kind: what ``AvroDeserializer`` allows without a logical type."""

_MILLIS: Final = {Logical.TIMESTAMP_MILLIS, Logical.LOCAL_TIMESTAMP_MILLIS}
_MICROS: Final = {Logical.TIMESTAMP_MICROS, Logical.LOCAL_TIMESTAMP_MICROS}
_NANOS: Final = {Logical.TIMESTAMP_NANOS, Logical.LOCAL_TIMESTAMP_NANOS}
_UNITS: Final = {
    logical: number
    for number, logicals in enumerate((_MILLIS, _MICROS, _NANOS))
    for logical in logicals
}
_INSTANTS: Final[dict[DataType, set[Logical | None]]] = {
    types.TIMESTAMP: {None, Logical.TIMESTAMP_MILLIS, Logical.TIMESTAMP_MICROS},
    types.TIMESTAMP_NTZ: {None, Logical.LOCAL_TIMESTAMP_MILLIS, Logical.LOCAL_TIMESTAMP_MICROS},
    types.DATE: {None, Logical.TIMESTAMP_MILLIS, Logical.LOCAL_TIMESTAMP_MILLIS},
}
"""The logical types of a ``long`` that is read as a type; without one, it is milliseconds."""


class _Resolver:
    def __init__(self, writer: AvroSchema, reader: AvroSchema, options: AvroTypeOptions) -> None:
        self._writer = writer
        self._reader = reader
        self._options = options
        self._nodes = 0

    def resolve(self, writer: AvroType, reader: AvroType, wanted: DataType, path: str) -> Node:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ValueError(f"reading it takes more than {MAX_NODES} steps")
        writer, reader = self._writer.resolve(writer), self._reader.resolve(reader)
        if isinstance(writer, Union):
            branches = (self.resolve(one, reader, wanted, path) for one in writer.branches)
            return ReadUnion(tuple(branches))
        if isinstance(reader, Union):
            return self._into_union(writer, reader, wanted, path)
        match writer, reader, wanted:
            case Record(), Record(), types.StructType():
                return self._record(writer, reader, wanted, path)
            case Array(items), Array(read), types.ArrayType(element):
                below = self.resolve(items, read, element, f"{path}.element")
                return ReadArray(below, items, self._writer)
            case Map(values), Map(read), types.MapType(types.STRING, value):
                return ReadMap(self.resolve(values, read, value, f"{path}.value"))
            case _:
                reason = _misfit(writer, reader)
                return _mismatch(path, reason) if reason else _atom(writer, reader, wanted, path)

    def _into_union(self, writer: AvroType, reader: Union, wanted: DataType, path: str) -> Node:
        number = self._branch(writer, reader)
        if number is None:
            return _mismatch(path, f"no branch of the union can hold {writer.name}")
        branch = reader.branches[number]
        if branch.name == "null":
            return ReadNull()
        branches = without_null(reader)
        if number_type(branches) not in {None, wanted}:
            return _mismatch(path, f"a union of numbers cannot be read as {wanted}")
        if not has_members(branches):
            return self.resolve(writer, branch, wanted, path)
        if not isinstance(wanted, types.StructType):
            return _mismatch(path, f"a union of {len(branches)} types cannot be read as {wanted}")
        return self._member(
            writer, branches, [one.name for one in branches].index(branch.name), wanted, path
        )

    def _member(
        self,
        writer: AvroType,
        branches: tuple[AvroType, ...],
        number: int,
        wanted: StructType,
        path: str,
    ) -> Node:
        """Return the field of a union's struct: by name, or by position as in Spark."""
        names = member_names(branches, self._options)
        unknown = set(wanted.names).difference(names)
        if unknown and len(wanted.fields) == len(names):
            names = wanted.names
        elif unknown:
            return _mismatch(path, f"the union has no {', '.join(sorted(unknown))}")
        name = names[number]
        if name not in wanted.names:
            return ReadMember(Step(name, None, Skip(writer, self._writer)))
        place = wanted.names.index(name)
        below = wanted.fields[place].type
        node = self.resolve(writer, branches[number], below, f"{path}.{name}")
        return ReadMember(Step(name, place, node))

    def _record(self, writer: Record, reader: Record, wanted: StructType, path: str) -> Node:
        places = dict(_places(reader, wanted))
        sources = _sources(writer, reader)
        steps = []
        for number, field in enumerate(writer.fields):
            read = sources.get(number)
            place = places.pop(read.name, None) if read else None
            if read is None or place is None:
                steps.append(Step(field.name, None, Skip(field.type, self._writer)))
                continue
            below = f"{path}.{read.name}"
            node = self.resolve(field.type, read.type, wanted.fields[place].type, below)
            steps.append(Step(read.name, place, node))
        fields = {field.name: field for field in reader.fields}
        for name, place in places.items():
            below = f"{path}.{name}"
            node = self._missing(fields.get(name), wanted.fields[place].type, below)
            steps.append(Step(name, place, node))
        return ReadRecord(tuple(steps))

    def _missing(self, field: RecordField | None, wanted: DataType, path: str) -> Node:
        """Return how to read a field of the reader, if there is one, that the writer lacks."""
        if field is None:
            return _mismatch(path, "the schema has no such field")
        if not field.has_default:
            return _mismatch(path, "the value's schema has no such field, and it has no default")
        try:
            data = encode_default(self._reader, field.type, field.default)
        except ValueError as error:
            return _mismatch(path, str(error))
        own = _Resolver(self._reader, self._reader, self._options)
        return ReadDefault(data, own.resolve(field.type, field.type, wanted, path))

    def _branch(self, writer: AvroType, union: Union) -> int | None:
        """Return the branch of a reader's union that a value is read as.

        As in Java it is the one of the same type and name, then a record with the same fields,
        then the first promotion.
        """
        branches = [self._reader.resolve(branch) for branch in union.branches]
        for accepts in (_is_same, _has_name, self._is_readable, _is_promoted):
            for number, branch in enumerate(branches):
                if accepts(writer, branch):
                    return number
        return None

    def _is_readable(self, writer: AvroType, reader: AvroType) -> bool:
        """Return whether a record has all fields of another one that have no default."""
        if not isinstance(writer, Record) or not isinstance(reader, Record):
            return False
        sources = [field.name for field in _sources(writer, reader).values()]
        return all(field.has_default or field.name in sources for field in reader.fields)


def _is_same(writer: AvroType, reader: AvroType) -> bool:
    return type(writer) is type(reader) and writer.name == reader.name


def _has_name(writer: AvroType, reader: AvroType) -> bool:
    return type(writer) is type(reader) and short_name(writer.name) in _short_names(reader)


def _is_promoted(writer: AvroType, reader: AvroType) -> bool:
    if not isinstance(writer, Primitive) or not isinstance(reader, Primitive):
        return False
    return reader.kind in _PROMOTIONS.get(writer.kind, ())


def _short_names(type_: AvroType) -> set[str]:
    aliases = type_.aliases if isinstance(type_, Record | Enumeration | Fixed) else ()
    return {short_name(type_.name), *map(short_name, aliases)}


def _places(reader: Record, wanted: StructType) -> Iterator[tuple[str, int]]:
    """Yield the name of the reader's field, and the place, of each wanted field.

    Names that differ in case only are equal, as in Spark, unless there is an equal one.
    """
    names = {field.name for field in reader.fields}
    free: dict[str, list[str]] = {}
    for name in names.difference(wanted.names):
        free.setdefault(name.lower(), []).append(name)
    for place, name in enumerate(wanted.names):
        similar = free.get(name.lower(), [])
        yield similar[0] if name not in names and len(similar) == 1 else name, place


def _sources(writer: Record, reader: Record) -> dict[int, RecordField]:
    """Return the reader's field of each field of the writer, by name or else by alias."""
    numbers = {field.name: number for number, field in enumerate(writer.fields)}
    found = {numbers[one.name]: one for one in reader.fields if one.name in numbers}
    for field in reader.fields:
        if field.name not in numbers:
            known = (numbers[alias] for alias in field.aliases if alias in numbers)
            free = next((number for number in known if number not in found), None)
            if free is not None:
                found[free] = field
    return found


def _misfit(writer: AvroType, reader: AvroType) -> str | None:
    """Return why a value that is neither nested nor a union is not of the reader's type."""
    if _is_promoted(writer, reader):
        return None
    if type(writer) is not type(reader) or not _has_name(writer, reader):
        return f"{writer.name} cannot be read as {reader.name}"
    if isinstance(writer, Fixed) and isinstance(reader, Fixed) and writer.size != reader.size:
        return f"{writer.size} bytes cannot be read as {reader.size}"
    return None


def _atom(writer: AvroType, reader: AvroType, wanted: DataType, path: str) -> Node:
    node: Node | None = None
    match writer, reader:
        case Enumeration(), Enumeration() if wanted == types.STRING:
            node = _enumeration(writer, reader)
        case (Primitive() | Fixed(), Primitive() | Fixed()) if isinstance(
            wanted, types.DecimalType
        ):
            return _decimal(writer, reader, wanted, path)
        case Fixed(_, size), Fixed() if wanted == types.BINARY:
            node = ReadFixed(size)
        case Primitive(Kind.NULL), Primitive():
            node = ReadNull()
        case Primitive(), Primitive():
            node = _primitive(writer, reader, wanted)
        case _:
            pass
    return node or _mismatch(path, f"{_described(reader)} cannot be read as {wanted}")


def _enumeration(writer: Enumeration, reader: Enumeration) -> ReadEnumeration:
    known = set(reader.symbols)
    return ReadEnumeration(
        tuple(symbol if symbol in known else reader.default for symbol in writer.symbols)
    )


def _decimal(
    writer: Primitive | Fixed, reader: Primitive | Fixed, wanted: types.DecimalType, path: str
) -> Node:
    logical = reader.logical
    if not isinstance(logical, Decimal):
        return _mismatch(path, f"{_described(reader)} cannot be read as {wanted}")
    added = wanted.scale - logical.scale
    if added < 0 or logical.precision + added > wanted.precision:
        return _mismatch(path, f"{_described(reader)} cannot be read as {wanted}")
    own = writer.logical
    if isinstance(own, Decimal) and (
        own.scale != logical.scale or own.precision > logical.precision
    ):
        return _mismatch(path, f"{_described(writer)} cannot be read as {_described(reader)}")
    return ReadDecimal(writer.size if isinstance(writer, Fixed) else None, logical.precision, added)


def _primitive(writer: Primitive, reader: Primitive, wanted: DataType) -> Node | None:
    conversion = _conversion(writer, reader, wanted)
    if conversion is Conversion.DOUBLE_OF_FLOAT and writer.kind is Kind.FLOAT:
        conversion = Conversion.DOUBLE
    return ReadPrimitive(writer.kind, conversion) if conversion else None


def _conversion(writer: Primitive, reader: Primitive, wanted: DataType) -> Conversion | None:
    if reader.logical is Logical.DATE and wanted == types.TIMESTAMP_NTZ:
        return Conversion.MICROS_OF_DAYS
    if reader.kind is not Kind.LONG:
        return _CONVERSIONS.get((reader.kind, wanted))
    units = {_UNITS[one.logical] for one in (writer, reader) if one.logical in _UNITS}
    if wanted in _INSTANTS:
        return _instant(writer, reader, wanted, len(units) > 1)
    return _CONVERSIONS.get((reader.kind, wanted)) if len(units) < 2 else None


def _instant(
    writer: Primitive, reader: Primitive, wanted: DataType, is_mixed: bool
) -> Conversion | None:
    if reader.logical not in _INSTANTS[wanted]:
        return None
    # A value keeps the instant that was written: Java reads the number in the reader's unit.
    logical = writer.logical if is_mixed else reader.logical
    if logical in _NANOS:
        return None
    if wanted == types.DATE:
        return Conversion.DATE_OF_MILLIS if logical not in _MICROS else None
    return Conversion.INT64 if logical in _MICROS else Conversion.MICROS_OF_MILLIS


def _described(type_: AvroType) -> str:
    logical = getattr(type_, "logical", None)
    if isinstance(logical, Decimal):
        return f"{type_.name} (decimal of {logical.precision} digits, {logical.scale} of scale)"
    return f"{type_.name} ({logical.value})" if logical else type_.name


def _mismatch(path: str, reason: str) -> Mismatch:
    return Mismatch(path.removeprefix("."), reason)


def _wrapped(schema: AvroSchema) -> AvroSchema:
    """Return a record of one field: its values have the same bytes."""
    return AvroSchema(Record("", (RecordField(VALUE, schema.type),)), schema.named)
