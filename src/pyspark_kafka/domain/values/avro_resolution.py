"""How values of a writer's schema are read as a reader's schema into a Spark type.

The rules are the specification's (1.12, "Schema Resolution"), as Java's ``Resolver`` reads them,
and for the types those of Spark's ``AvroDeserializer``. As in Java, what does not fit is an error
of the values that have it, so that other branches of a union can be read.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, final

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
    from collections.abc import Callable, Iterator, Sequence

    from .avro_schema import AvroType
    from .avro_types import AvroTypeOptions
    from .data_types import DataType, StructType

MAX_NODES: Final = 100_000
"""The values that are resolved: unions in records in unions multiply."""


class Conversion(enum.Enum):
    """The conversion of a primitive value: the column's type, and the steps on the way."""

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
class Mismatch:
    """A value that cannot be read: the path of the reader's field, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"field '{self.path}': {self.reason}" if self.path else self.reason


class Emitter(Protocol):
    """Takes the steps of reading a value, in the order of its bytes.

    ``target`` is the number of what gets a value, 0 for the whole value. Functions that are passed
    add the steps of what is inside.
    """

    def child(self, target: int, place: int) -> int:
        """Return the target of a field of a struct by its place, or of the values of a map."""

    def skip(self, target: int, name: str, type_: AvroType, schema: AvroSchema) -> None:
        """Pass over a value of a type of a schema, a field of the struct ``target``."""

    def null(self, target: int) -> None:
        """Put a null, which takes no bytes."""

    def primitive(self, target: int, kind: Kind, conversion: Conversion) -> None:
        """Read a primitive value of the writer."""

    def fixed(self, target: int, size: int) -> None:
        """Read bytes of a fixed number, as a binary."""

    def decimal(self, target: int, size: int | None, precision: int, added_scale: int) -> None:
        """Read a decimal of at most ``precision`` digits, in ``size`` bytes or behind a length.

        The column has ``added_scale`` more digits behind the point.
        """

    def enumeration(self, target: int, symbols: Sequence[str | None]) -> None:
        """Read a symbol by the writer's numbers; ``None`` is one that the reader does not have."""

    def mismatch(self, target: int, found: Mismatch) -> None:
        """Fail at a value that cannot be read."""

    def end_struct(self, target: int, *, is_member: bool) -> None:
        """Put a struct of what was read: all of its fields, or the one member of a union."""

    def array(
        self, target: int, items: AvroType, schema: AvroSchema, add: Callable[[int], None]
    ) -> None:
        """Read an array, whose elements are written as ``items`` of a schema."""

    def map(self, target: int, add: Callable[[int], None]) -> None:
        """Read a map; ``add`` is for its values."""

    def union(
        self, target: int, count: int, nulls: Sequence[int], add: Callable[[int], None]
    ) -> None:
        """Read a value behind the number of its branch; those of ``nulls`` are read as null."""

    def default(self, target: int, data: bytes, add: Callable[[], None]) -> None:
        """Read from the datum of the reader's default."""


def resolve(
    writer: AvroSchema,
    reader: AvroSchema,
    wanted: StructType,
    emitter: Emitter,
    options: AvroTypeOptions = NUMBERED,
) -> list[Mismatch]:
    """Emit how to read the wanted fields, and return what cannot be read.

    :raises ValueError: if it takes too many steps.
    """
    if is_wrapped(reader):
        writer, reader = _wrapped(writer), _wrapped(reader)
    mismatches: list[Mismatch] = []
    resolver = _Resolver(writer, reader, options, emitter, mismatches)
    resolver.resolve(writer.type, reader.type, wanted, 0, "")
    return mismatches


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
    def __init__(
        self,
        writer: AvroSchema,
        reader: AvroSchema,
        options: AvroTypeOptions,
        emitter: Emitter,
        mismatches: list[Mismatch],
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._options = options
        self._emit = emitter
        self._mismatches = mismatches
        self._nodes = 0

    def resolve(
        self, writer: AvroType, reader: AvroType, wanted: DataType, target: int, path: str
    ) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ValueError(f"reading it takes more than {MAX_NODES} steps")
        writer, reader = self._writer.resolve(writer), self._reader.resolve(reader)
        if isinstance(writer, Union):
            self._from_union(writer, reader, wanted, target, path)
            return
        if isinstance(reader, Union):
            self._into_union(writer, reader, wanted, target, path)
            return
        match writer, reader, wanted:
            case Record(), Record(), types.StructType():
                self._record(writer, reader, wanted, target, path)
            case Array(items), Array(read), types.ArrayType(element):
                self._emit.array(
                    target,
                    items,
                    self._writer,
                    lambda child: self.resolve(items, read, element, child, f"{path}.element"),
                )
            case Map(values), Map(read), types.MapType(types.STRING, value):
                self._emit.map(
                    target,
                    lambda child: self.resolve(values, read, value, child, f"{path}.value"),
                )
            case _:
                reason = _misfit(writer, reader) or self._atom(writer, reader, wanted, target)
                self._refuse(target, path, reason)

    def _from_union(
        self, writer: Union, reader: AvroType, wanted: DataType, target: int, path: str
    ) -> None:
        nulls = [
            number
            for number, one in enumerate(writer.branches)
            if one.name == "null" and _reads_null(reader, wanted)
        ]
        self._emit.union(
            target,
            len(writer.branches),
            nulls,
            lambda number: self.resolve(writer.branches[number], reader, wanted, target, path),
        )

    def _into_union(
        self, writer: AvroType, reader: Union, wanted: DataType, target: int, path: str
    ) -> None:
        number = self._branch(writer, reader)
        if number is None:
            self._refuse(target, path, f"no branch of the union can hold {writer.name}")
            return
        branch = reader.branches[number]
        branches = without_null(reader)
        if branch.name == "null":
            self._emit.null(target)
        elif number_type(branches) not in {None, wanted}:
            self._refuse(target, path, f"a union of numbers cannot be read as {wanted}")
        elif not has_members(branches):
            self.resolve(writer, branch, wanted, target, path)
        elif isinstance(wanted, types.StructType):
            place = [one.name for one in branches].index(branch.name)
            self._member(writer, branches, place, wanted, target, path)
        else:
            reason = f"a union of {len(branches)} types cannot be read as {wanted}"
            self._refuse(target, path, reason)

    def _member(
        self,
        writer: AvroType,
        branches: tuple[AvroType, ...],
        number: int,
        wanted: StructType,
        target: int,
        path: str,
    ) -> None:
        """Read the field of a union's struct: by name, or by position as in Spark."""
        names = member_names(branches, self._options)
        unknown = set(wanted.names).difference(names)
        if unknown and len(wanted.fields) == len(names):
            names = wanted.names
        elif unknown:
            self._refuse(target, path, f"the union has no {', '.join(sorted(unknown))}")
            return
        name = names[number]
        if name not in wanted.names:
            self._emit.skip(target, name, writer, self._writer)
        else:
            place = wanted.names.index(name)
            below, child = wanted.fields[place].type, self._emit.child(target, place)
            self.resolve(writer, branches[number], below, child, f"{path}.{name}")
        self._emit.end_struct(target, is_member=True)

    def _record(
        self, writer: Record, reader: Record, wanted: StructType, target: int, path: str
    ) -> None:
        """Read the fields of the writer in their order, then the defaults of other fields."""
        places = dict(_places(reader, wanted))
        sources = _sources(writer, reader)
        for number, field in enumerate(writer.fields):
            read = sources.get(number)
            place = places.pop(read.name, None) if read else None
            if read is None or place is None:
                self._emit.skip(target, field.name, field.type, self._writer)
                continue
            below, child = wanted.fields[place].type, self._emit.child(target, place)
            self.resolve(field.type, read.type, below, child, f"{path}.{read.name}")
        fields = {field.name: field for field in reader.fields}
        for name, place in places.items():
            below, child = wanted.fields[place].type, self._emit.child(target, place)
            self._missing(fields.get(name), below, child, f"{path}.{name}")
        self._emit.end_struct(target, is_member=False)

    def _missing(self, field: RecordField | None, wanted: DataType, target: int, path: str) -> None:
        """Read a field of the reader, if there is one, that the writer lacks."""
        if field is None:
            self._refuse(target, path, "the schema has no such field")
            return
        if not field.has_default:
            reason = "the value's schema has no such field, and it has no default"
            self._refuse(target, path, reason)
            return
        try:
            data = encode_default(self._reader, field.type, field.default)
        except ValueError as error:
            self._refuse(target, path, str(error))
            return
        if isinstance(field.type, Union) and field.default is None:
            self._emit.null(target)
            return
        own = _Resolver(self._reader, self._reader, self._options, self._emit, self._mismatches)
        self._emit.default(
            target, data, lambda: own.resolve(field.type, field.type, wanted, target, path)
        )

    def _atom(
        self, writer: AvroType, reader: AvroType, wanted: DataType, target: int
    ) -> str | None:
        """Read a value that is neither nested nor a union, or return why it cannot be read."""
        conversion = None
        match writer, reader:
            case Enumeration(), Enumeration() if wanted == types.STRING:
                known = set(reader.symbols)
                symbols = [one if one in known else reader.default for one in writer.symbols]
                self._emit.enumeration(target, symbols)
                return None
            case (Primitive() | Fixed(), Primitive() | Fixed()) if isinstance(
                wanted, types.DecimalType
            ):
                return self._decimal(writer, reader, wanted, target)
            case Fixed(_, size), Fixed() if wanted == types.BINARY:
                self._emit.fixed(target, size)
                return None
            case Primitive(Kind.NULL), Primitive():
                self._emit.null(target)
                return None
            case Primitive(kind), Primitive() if conversion := _conversion(writer, reader, wanted):
                self._emit.primitive(target, kind, conversion)
                return None
        return f"{_described(reader)} cannot be read as {wanted}"

    def _decimal(
        self,
        writer: Primitive | Fixed,
        reader: Primitive | Fixed,
        wanted: types.DecimalType,
        target: int,
    ) -> str | None:
        logical, own = reader.logical, writer.logical
        if not isinstance(logical, Decimal):
            return f"{_described(reader)} cannot be read as {wanted}"
        added = wanted.scale - logical.scale
        if added < 0 or logical.precision + added > wanted.precision:
            return f"{_described(reader)} cannot be read as {wanted}"
        if isinstance(own, Decimal) and (
            own.scale != logical.scale or own.precision > logical.precision
        ):
            return f"{_described(writer)} cannot be read as {_described(reader)}"
        size = writer.size if isinstance(writer, Fixed) else None
        self._emit.decimal(target, size, logical.precision, added)
        return None

    def _refuse(self, target: int, path: str, reason: str | None) -> None:
        if reason is not None:
            found = Mismatch(path.removeprefix("."), reason)
            self._mismatches.append(found)
            self._emit.mismatch(target, found)

    def _branch(self, writer: AvroType, union: Union) -> int | None:
        """Return the branch of a reader's union that a value is read as.

        As in Java, it is the branch of the same type and name, then a record with the same fields,
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


def _reads_null(reader: AvroType, wanted: DataType) -> bool:
    """Return whether a null of the writer is read as null."""
    if isinstance(reader, Union):
        return any(branch.name == "null" for branch in reader.branches)
    return reader.name == "null" and not isinstance(wanted, types.DecimalType)


def _conversion(writer: Primitive, reader: Primitive, wanted: DataType) -> Conversion | None:
    if reader.logical is Logical.DATE and wanted == types.TIMESTAMP_NTZ:
        return Conversion.MICROS_OF_DAYS
    if writer.kind is Kind.FLOAT and wanted == types.DOUBLE:
        return Conversion.DOUBLE
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


def _wrapped(schema: AvroSchema) -> AvroSchema:
    """Return a record of one field: its values have the same bytes."""
    return AvroSchema(Record("", (RecordField(VALUE, schema.type),)), schema.named)
