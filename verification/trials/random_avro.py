"""Random Avro schemas, what they become when they evolve, and their values."""

import itertools
import struct
from collections.abc import Iterator
from random import Random
from typing import Any, Final

_PRIMITIVES: Final = ("int", "long", "float", "double", "string", "bytes", "boolean")
_PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
}
_BRANCHES: Final[tuple[tuple[str, ...], ...]] = (
    ("int", "double", "long"),
    ("string", "bytes"),
    ("boolean",),
)
"""One of each: fastavro takes the first branch that a value can be promoted to, and Java the one of
its own type."""

_TEXTS: Final = ("", "a", "é😀", "x" * 300, "\0")
_ADDED: Final[tuple[dict[str, Any], ...]] = (
    {"type": "int", "default": 7},
    {"type": ["null", "string"], "default": None},
    {"type": {"type": "array", "items": "string"}, "default": ["x", "é"]},
    {"type": {"type": "map", "values": "double"}, "default": {"k": 2.5}},
)

Schema = Any


class RandomSchemas:
    """Schemas whose named types may be used again, in any namespace."""

    def __init__(self, dice: Random) -> None:
        """Take the source of chance."""
        self._dice = dice
        self._numbers = itertools.count()
        self._named: list[Schema] = []

    def record(self, depth: int = 4) -> Schema:
        """Return a record."""
        name = self._name()
        fields = [
            {"name": f"f{number}", "type": self._type(depth - 1)}
            for number in range(self._dice.randint(1, 5))
        ]
        return self._kept({"type": "record", "name": name, "fields": fields})

    def _type(self, depth: int) -> Schema:  # noqa: PLR0911  # one for each type
        dice = self._dice
        kinds = ["primitive"] * 4 + ["enum", "fixed", "union"]
        kinds += ["array", "map", "record", "nullable"] if depth > 0 else []
        kinds += ["again"] if self._named else []
        match dice.choice(kinds):
            case "enum":
                enum = {"type": "enum", "name": self._name(), "symbols": ["A", "B", "C"]}
                return self._kept(enum)
            case "fixed":
                size = dice.randint(0, 5)
                return self._kept({"type": "fixed", "name": self._name(), "size": size})
            case "union":
                groups = dice.sample(_BRANCHES, dice.randint(1, 3))
                return dice.sample(found := [*map(dice.choice, groups), "null"], len(found))
            case "array":
                return {"type": "array", "items": self._type(depth - 1)}
            case "map":
                return {"type": "map", "values": self._type(depth - 1)}
            case "record":
                return self.record(depth)
            case "nullable":
                return ["null", self.record(depth)]
            case "again":
                return dice.choice(self._named)
        return dice.choice(_PRIMITIVES)

    def _name(self) -> str:
        return f"{self._dice.choice(('n', 'a.b', 'c'))}.T{next(self._numbers)}"

    def _kept(self, schema: Schema) -> Schema:
        self._named.append(schema)
        return schema


def with_names(schema: Schema) -> Schema:
    """Return a schema that defines each named type once, and then names it."""
    return _with_names(schema, set())


def _with_names(schema: Schema, known: set[str]) -> Schema:
    if isinstance(schema, list):
        return [_with_names(one, known) for one in schema]
    if not isinstance(schema, dict):
        return schema
    name = schema.get("name")
    if name in known:
        return name
    if name is not None:
        known.add(name)
    found = dict(schema)
    for key in {"items", "values"} & schema.keys():
        found[key] = _with_names(schema[key], known)
    if "fields" in schema:
        found["fields"] = [
            {**one, "type": _with_names(one["type"], known)} for one in schema["fields"]
        ]
    return found


def evolved(dice: Random, schema: Schema, done: dict[str, Schema] | None = None) -> Schema:
    """Return a reader's schema for values of a writer's."""
    done = {} if done is None else done
    if isinstance(schema, str):
        promoted = dice.choice((schema, schema, *_PROMOTIONS.get(schema, ())))
        return ["null", promoted] if dice.random() < 0.15 else promoted
    if isinstance(schema, list):
        branches = [one if isinstance(one, str) else evolved(dice, one, done) for one in schema]
        return dice.sample(branches, len(branches))
    name = schema.get("name")
    if name is not None and name in done:
        return done[name]
    found: dict[str, Any] = dict(schema)
    for key in {"items", "values"} & schema.keys():
        found[key] = evolved(dice, schema[key], done)
    if schema["type"] == "enum" and dice.random() < 0.5:
        found["symbols"], found["default"] = ["B", "A"], "A"
    if "fields" in schema:
        found["fields"] = _evolved_fields(dice, schema["fields"], done)
    if name is not None:
        done[name] = found
    return found


def _evolved_fields(dice: Random, fields: list[Any], done: dict[str, Schema]) -> list[Any]:
    kept = [
        {**one, "type": evolved(dice, one["type"], done)} for one in fields if dice.random() < 0.85
    ]
    for one in kept:
        if dice.random() < 0.15:
            one["aliases"] = [one["name"]]
            one["name"] = f"new_{one['name']}"
    added: list[Any] = [
        {"name": f"g{number}", **one} for number, one in enumerate(_ADDED) if dice.random() < 0.3
    ]
    found = kept + added or [{"name": "g", **_ADDED[0]}]
    return dice.sample(found, len(found))


def random_value(dice: Random, schema: Schema) -> Any:  # noqa: PLR0911  # one for each type
    """Return a value as fastavro writes it."""
    if isinstance(schema, list):
        return random_value(dice, dice.choice(schema))
    if isinstance(schema, str):
        return _atom(dice, schema)
    match schema["type"]:
        case "enum":
            return dice.choice(schema["symbols"])
        case "fixed":
            return dice.randbytes(schema["size"])
        case "array":
            count = dice.choice((0, 1, 2, 5))
            return [random_value(dice, schema["items"]) for _ in range(count)]
        case "map":
            keys = dice.sample(_TEXTS, dice.randrange(3))
            return {key: random_value(dice, schema["values"]) for key in keys}
    return {one["name"]: random_value(dice, one["type"]) for one in schema["fields"]}


def _atom(dice: Random, kind: str) -> Any:
    numbers: dict[str, Iterator[Any] | Any] = {
        "null": None,
        "boolean": dice.random() < 0.5,
        "int": dice.choice((0, -1, 2**31 - 1, dice.randint(-(2**31), 2**31 - 1))),
        "long": dice.choice((0, 2**63 - 1, -(2**63), dice.randint(-(2**40), 2**40))),
        "float": struct.unpack("<f", struct.pack("<f", dice.uniform(-1e6, 1e6)))[0],
        "double": dice.choice((0.0, -0.0, float("inf"), dice.uniform(-1e9, 1e9))),
        "string": dice.choice(_TEXTS),
        "bytes": dice.choice((b"", b"ab", b"\xff\x00", dice.randbytes(20))),
    }
    return numbers[kind]
