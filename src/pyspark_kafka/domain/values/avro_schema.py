"""Avro schemas (specification 1.12), parsed from JSON that is not trusted."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeGuard, final

from ..json_text import is_integer, read_commented_json

MAX_TEXT: Final = 4 * 1024**2
"""The characters of a schema."""

MAX_DEPTH: Final = 64
"""How deeply types are nested in the text."""

MAX_FIXED_BYTES: Final = 2**31 - 1


class Kind(enum.Enum):
    """The primitive types."""

    NULL = "null"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    STRING = "string"


class Logical(enum.Enum):
    """The logical types of the specification, all but ``decimal``."""

    DATE = "date"
    TIME_MILLIS = "time-millis"
    TIME_MICROS = "time-micros"
    TIMESTAMP_MILLIS = "timestamp-millis"
    TIMESTAMP_MICROS = "timestamp-micros"
    TIMESTAMP_NANOS = "timestamp-nanos"
    LOCAL_TIMESTAMP_MILLIS = "local-timestamp-millis"
    LOCAL_TIMESTAMP_MICROS = "local-timestamp-micros"
    LOCAL_TIMESTAMP_NANOS = "local-timestamp-nanos"
    UUID = "uuid"
    DURATION = "duration"


@final
@dataclass(frozen=True, slots=True)
class Decimal:
    """The logical type ``decimal``."""

    precision: int
    scale: int = 0


LogicalType: TypeAlias = Logical | Decimal


@final
@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type."""

    kind: Kind
    logical: LogicalType | None = None

    @property
    def name(self) -> str:
        """The name of the type."""
        return self.kind.value


@final
@dataclass(frozen=True, slots=True)
class Fixed:
    """A fixed number of bytes."""

    name: str
    size: int
    logical: LogicalType | None = None
    aliases: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Enumeration:
    """One of some symbols; a reader takes ``default`` for symbols that it does not have."""

    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Array:
    """An array."""

    items: AvroType
    name: str = field(default="array", init=False)


@final
@dataclass(frozen=True, slots=True)
class Map:
    """A map, whose keys are strings."""

    values: AvroType
    name: str = field(default="map", init=False)


@final
@dataclass(frozen=True, slots=True)
class Union:
    """One of some types, none of them a union."""

    branches: tuple[AvroType, ...]
    name: str = field(default="union", init=False)


@final
@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a record; ``default`` is JSON, and only there if ``has_default``."""

    name: str
    type: AvroType
    has_default: bool = False
    default: Any = None
    aliases: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Record:
    """A record."""

    name: str
    fields: tuple[RecordField, ...]
    aliases: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Reference:
    """A record inside its own definition, by its full name."""

    name: str


NamedType: TypeAlias = Fixed | Enumeration | Record
AvroType: TypeAlias = Primitive | Fixed | Enumeration | Array | Map | Union | Record | Reference


@final
@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A schema: its type, and its named types by their full names."""

    type: AvroType
    named: Mapping[str, NamedType] = field(default_factory=dict, repr=False)

    def resolve(self, type_: AvroType) -> AvroType:
        """Return the record that a reference refers to, and any other type as it is."""
        return self.named[type_.name] if isinstance(type_, Reference) else type_


def parse_avro_schema(text: str, imports: Iterable[str] = ()) -> AvroSchema:
    """Parse a schema that may use the named types of others, which are parsed before it.

    As in Java's parser, a type may be used before its definition, and defined again in the same
    way; comments and duplicate keys are accepted.

    :raises ValueError: if it is not one, with the path to what is wrong.
    """
    parser = _Parser()
    for imported in imports:
        parser.parse_text(_read(imported))
    return AvroSchema(parser.parse_text(_read(text)), parser.named)


def _read(text: str) -> Any:
    if len(text) > MAX_TEXT:
        raise ValueError(f"it has {len(text)} characters, more than {MAX_TEXT}")
    return read_commented_json(text)


def short_name(full_name: str) -> str:
    """Return a name without its namespace."""
    return full_name.rpartition(".")[2]


_LOGICAL_KINDS: Final = dict.fromkeys(Logical, "long") | {
    Logical.DATE: "int",
    Logical.TIME_MILLIS: "int",
    Logical.UUID: "string",
    Logical.DURATION: "",
}
_FIXED_LOGICALS: Final = {Logical.UUID: 16, Logical.DURATION: 12}
_PRIMITIVES: Final = {kind.value: kind for kind in Kind}
_NAMED: Final = frozenset({"fixed", "enum", "record", "error"})


class _Parser:
    def __init__(self) -> None:
        self.named: dict[str, NamedType] = {}
        self._open: set[str] = set()
        # Where the text defines types, each with the namespace around it.
        self._definitions: dict[str, tuple[Any, str]] = {}
        self._early: dict[int, AvroType] = {}
        self._complex: Final[Mapping[str, Callable[[dict[str, Any], str, str, int], AvroType]]] = {
            "array": self._array,
            "map": self._map,
            "fixed": self._fixed,
            "enum": self._enumeration,
            "record": self._record,
            "error": self._record,
        }

    def parse_text(self, json: Any) -> AvroType:
        self._definitions = dict(_definitions(json, "", 0))
        self._early = {}
        return self.parse(json, "", "", 0)

    def parse(self, json: Any, namespace: str, path: str, depth: int) -> AvroType:
        if depth > MAX_DEPTH:
            raise _error(path, f"it is nested more than {MAX_DEPTH} levels deep")
        if isinstance(json, str):
            return self._by_name(json, namespace, path, depth)
        if isinstance(json, list):
            return self._union(json, namespace, path, depth)
        if not isinstance(json, dict):
            raise _error(path, f"{json!r} is not a type")
        type_ = json.get("type")
        if not isinstance(type_, str):
            return self.parse(type_, namespace, path, depth + 1)
        if type_ in _PRIMITIVES:
            return Primitive(_PRIMITIVES[type_], _logical_type(json, type_, None))
        if type_ in self._complex:
            early = self._early.get(id(json))
            return early or self._complex[type_](json, namespace, path, depth + 1)
        return self._by_name(type_, namespace, path, depth)

    def _by_name(self, name: str, namespace: str, path: str, depth: int) -> AvroType:
        if name in _PRIMITIVES:
            return Primitive(_PRIMITIVES[name])
        for full_name in (_full_name(name, namespace), name):
            if full_name in self._open:
                return Reference(full_name)
            if full_name in self.named:
                return self.named[full_name]
        full_name = _full_name(name, namespace)
        if full_name not in self._definitions:
            raise _error(path, f"the type {name!r} is not defined")
        definition, around = self._definitions[full_name]
        found = self._early[id(definition)] = self.parse(definition, around, path, depth + 1)
        return found

    def _union(self, json: list[Any], namespace: str, path: str, depth: int) -> Union:
        branches = tuple(self.parse(one, namespace, path, depth + 1) for one in json)
        names = [branch.name for branch in branches]
        if not names:
            raise _error(path, "a union has no branches, so that no value can have its type")
        if len(names) != len(set(names)) or "union" in names:
            raise _error(path, f"a union cannot have the branches {names}")
        return Union(branches)

    def _array(self, json: dict[str, Any], namespace: str, path: str, depth: int) -> Array:
        return Array(self.parse(json.get("items"), namespace, _below(path, "element"), depth))

    def _map(self, json: dict[str, Any], namespace: str, path: str, depth: int) -> Map:
        return Map(self.parse(json.get("values"), namespace, _below(path, "value"), depth))

    def _fixed(self, json: dict[str, Any], namespace: str, path: str, _depth: int) -> NamedType:
        name, aliases = self._define(json, namespace, path)
        size = json.get("size")
        if not is_integer(size) or not 0 <= size <= MAX_FIXED_BYTES:
            raise _error(path, f"the size of {name} is {size!r}")
        logical = _logical_type(json, "fixed", size)
        return self._defined(Fixed(name, size, logical, aliases), path)

    def _enumeration(
        self, json: dict[str, Any], namespace: str, path: str, _depth: int
    ) -> NamedType:
        name, aliases = self._define(json, namespace, path)
        symbols, default = json.get("symbols"), json.get("default")
        if not isinstance(symbols, list) or not all(map(_is_name, symbols)):
            raise _error(path, f"the symbols of {name} are {symbols!r}")
        if len(set(symbols)) != len(symbols) or default not in [None, *symbols]:
            raise _error(path, f"{name} has duplicate symbols or an unknown default")
        return self._defined(Enumeration(name, tuple(symbols), default, aliases), path)

    def _record(self, json: dict[str, Any], namespace: str, path: str, depth: int) -> NamedType:
        name, aliases = self._define(json, namespace, path)
        self._open.add(name)
        fields = json.get("fields")
        if not isinstance(fields, list):
            raise _error(path, f"{name} has no fields")
        inner = name.rpartition(".")[0]
        parsed = tuple(self._field(one, inner, path, depth) for one in fields)
        if len({one.name for one in parsed}) != len(parsed):
            raise _error(path, f"{name} has two fields of one name")
        self._open.remove(name)
        return self._defined(Record(name, parsed, aliases), path)

    def _field(self, json: Any, namespace: str, path: str, depth: int) -> RecordField:
        name = json.get("name") if isinstance(json, dict) else None
        if not _is_name(name):
            raise _error(path, f"a field has the name {name!r}")
        aliases = _strings(json.get("aliases", []), path)
        type_ = self.parse(json.get("type"), namespace, _below(path, name), depth + 1)
        return RecordField(name, type_, "default" in json, json.get("default"), aliases)

    def _define(
        self, json: dict[str, Any], namespace: str, path: str
    ) -> tuple[str, tuple[str, ...]]:
        """Return the full name and the aliases of a named type that is being defined."""
        name, own = json.get("name"), json.get("namespace", namespace)
        if not isinstance(name, str) or not isinstance(own, str | None):
            raise _error(path, f"a type has the name {name!r} and the namespace {own!r}")
        full_name = _defined_name(name, own or "")
        is_taken = full_name in self._open or full_name in _PRIMITIVES
        if is_taken or not all(map(_is_name, full_name.split("."))):
            raise _error(path, f"{full_name!r} is not a new name")
        inner = full_name.rpartition(".")[0]
        aliases = _strings(json.get("aliases", []), path)
        return full_name, tuple(_full_name(alias, inner) for alias in aliases)

    def _defined(self, type_: NamedType, path: str) -> NamedType:
        """Return the first definition of a type; further ones may only differ in aliases."""
        found = self.named.setdefault(type_.name, type_)
        if _essence(found) != _essence(type_):
            raise _error(path, f"{type_.name!r} is defined twice, in different ways")
        return found


def _definitions(json: Any, namespace: str, depth: int) -> Iterator[tuple[str, tuple[Any, str]]]:
    """Yield the named types that a text defines, with the namespace around each."""
    if depth > MAX_DEPTH:
        return
    if isinstance(json, list):
        for branch in json:
            yield from _definitions(branch, namespace, depth + 1)
    if not isinstance(json, dict):
        return
    type_, inner = json.get("type"), namespace
    name, own = json.get("name"), json.get("namespace", namespace)
    is_named = isinstance(type_, str) and type_ in _NAMED
    if is_named and isinstance(name, str) and isinstance(own, str | None):
        full_name = _defined_name(name, own or "")
        inner = full_name.rpartition(".")[0]
        yield full_name, (json, namespace)
    fields = json.get("fields")
    inside = fields if isinstance(fields, list) else []
    types = [one.get("type") for one in inside if isinstance(one, dict)]
    for each in (*types, json.get("items"), json.get("values"), type_):
        if not isinstance(each, str):
            yield from _definitions(each, inner, depth + 1)


def _essence(type_: NamedType) -> NamedType:
    """Return a type without what Java does not compare: aliases, and the default of an enum."""
    match type_:
        case Enumeration():
            return replace(type_, aliases=(), default=None)
        case Record(fields=fields):
            plain = tuple(replace(field, aliases=()) for field in fields)
            return replace(type_, aliases=(), fields=plain)
    return replace(type_, aliases=())


def _defined_name(name: str, namespace: str) -> str:
    """Return the full name of a definition; a dot in front stands for no namespace."""
    full_name = _full_name(name, namespace)
    return full_name[1:] if full_name.rfind(".") == 0 else full_name


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _is_name(name: object) -> TypeGuard[str]:
    """Return whether Java's default validator accepts a name: letters of any script."""
    return isinstance(name, str) and name.replace("_", "a").isalnum() and not name[0].isdigit()


def _strings(json: Any, path: str) -> tuple[str, ...]:
    if not isinstance(json, list) or not all(isinstance(one, str) for one in json):
        raise _error(path, f"aliases are {json!r}")
    return tuple(json)


def _logical_type(json: dict[str, Any], type_: str, size: int | None) -> LogicalType | None:
    """Return the logical type of a type; one that is unknown or not valid is ignored."""
    name = json.get("logicalType")
    if name == "decimal":
        return _decimal(json, type_, size)
    for logical in Logical:
        if logical.value == name:
            fits = type_ == _LOGICAL_KINDS.get(logical)
            is_fixed = size is not None and _FIXED_LOGICALS.get(logical) == size
            return logical if fits or is_fixed else None
    return None


def _decimal(json: dict[str, Any], type_: str, size: int | None) -> Decimal | None:
    precision, scale = json.get("precision"), json.get("scale", 0)
    if type_ not in {"bytes", "fixed"} or not is_integer(precision) or not is_integer(scale):
        return None
    fits = size is None or _fits(precision, size)
    return Decimal(precision, scale) if fits and 0 <= scale <= precision >= 1 else None


def _fits(precision: int, size: int) -> bool:
    """Return whether numbers of ``precision`` digits fit in ``size`` bytes, signed."""
    if precision <= 2 * size or precision > 3 * size:
        return precision <= 2 * size
    # Powers of large numbers take long, and Spark has no such decimals.
    return size <= 1024 and 10**precision <= 2 ** (8 * size - 1)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _error(path: str, reason: str) -> ValueError:
    return ValueError(f"field '{path}': {reason}" if path else reason)
