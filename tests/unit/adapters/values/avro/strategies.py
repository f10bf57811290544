"""Schemas of writers and readers, and values of them, made by hypothesis."""

import itertools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]

INT32: Final = st.integers(-(2**31), 2**31 - 1)
INT64: Final = st.integers(-(2**63), 2**63 - 1)
TEXT: Final = st.text(st.characters(codec="utf-8"), max_size=12)

_VALUES: Final = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": INT32,
    "long": INT64,
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=12),
    "string": TEXT,
}

_PROMOTIONS: Final = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
}

_UNIONS: Final = (
    ["null", "int"],
    ["long", "null"],
    ["null", "string"],
    ["int", "string"],
    ["null", "boolean", "double", "bytes"],
    ["string", {"type": "array", "items": "int"}, "null", {"type": "map", "values": "string"}],
)
"""Their branches differ in Python's types."""


@st.composite
def records(draw: Draw) -> dict[str, Any]:
    """Return the schema of a record."""
    names = (f"N{number}" for number in itertools.count())
    return _record(draw, names, 3)


def _record(draw: Draw, names: Any, depth: int) -> dict[str, Any]:
    fields = [
        {"name": f"f{number}", "type": _type(draw, names, depth - 1)}
        for number in range(draw(st.integers(1, 4)))
    ]
    return {"type": "record", "name": next(names), "fields": fields}


def _type(draw: Draw, names: Any, depth: int) -> Any:  # noqa: PLR0911  # one for each type
    kinds = ["primitive", "primitive", "union", "enum", "fixed"]
    if depth > 0:
        kinds += ["array", "map", "record", "nullable"]
    match draw(st.sampled_from(kinds)):
        case "union":
            return draw(st.sampled_from(_UNIONS))
        case "enum":
            return {"type": "enum", "name": next(names), "symbols": ["A", "B", "C"]}
        case "fixed":
            return {"type": "fixed", "name": next(names), "size": draw(st.integers(0, 5))}
        case "array":
            return {"type": "array", "items": _type(draw, names, depth - 1)}
        case "map":
            return {"type": "map", "values": _type(draw, names, depth - 1)}
        case "record":
            return _record(draw, names, depth)
        case "nullable":
            return ["null", _record(draw, names, depth)]
    return draw(st.sampled_from([name for name in _VALUES if name != "null"]))


def values_of(schema: Any) -> st.SearchStrategy[Any]:  # noqa: PLR0911  # one for each type
    """Return a strategy of the values of a schema."""
    if isinstance(schema, str):
        return _VALUES[schema]
    if isinstance(schema, list):
        return st.one_of([values_of(branch) for branch in schema])
    match schema["type"]:
        case "record":
            fields = {one["name"]: values_of(one["type"]) for one in schema["fields"]}
            return st.fixed_dictionaries(fields)
        case "array":
            return st.lists(values_of(schema["items"]), max_size=4)
        case "map":
            return st.dictionaries(TEXT, values_of(schema["values"]), max_size=4)
        case "enum":
            return st.sampled_from(schema["symbols"])
        case _:
            return st.binary(min_size=schema["size"], max_size=schema["size"])


@st.composite
def evolved(draw: Draw, schema: Any) -> Any:
    """Return a reader's schema for what was written with a schema."""
    return _evolved(draw, schema)


def _evolved(draw: Draw, schema: Any) -> Any:  # noqa: PLR0911  # one for each type
    if isinstance(schema, str):
        promoted = draw(st.sampled_from(_PROMOTIONS.get(schema, (schema,))))
        return ["null", promoted] if draw(st.integers(0, 5)) == 0 else promoted
    if isinstance(schema, list):
        return schema
    match schema["type"]:
        case "record":
            return {**schema, "fields": _evolved_fields(draw, schema["fields"])}
        case "array":
            return {**schema, "items": _evolved(draw, schema["items"])}
        case "map":
            return {**schema, "values": _evolved(draw, schema["values"])}
        case "enum":
            return {**schema, "symbols": draw(st.permutations([*schema["symbols"], "D"]))}
    return schema


def _evolved_fields(draw: Draw, fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = [
        {**one, "type": _evolved(draw, one["type"])} for one in fields if draw(st.integers(0, 3))
    ]
    for one in kept:
        if draw(st.integers(0, 4)) == 0:
            one["aliases"] = [one["name"]]
            one["name"] = f"new_{one['name']}"
    added = [
        {"name": "g0", "type": "int", "default": 7},
        {"name": "g1", "type": ["null", "string"], "default": None},
        {"name": "g2", "type": {"type": "array", "items": "string"}, "default": ["x", "y"]},
    ]
    return draw(st.permutations(kept + added[: draw(st.integers(1, 3))]))


def expected(value: Any, schema: Any) -> Any:
    """Return what ``plain`` gives for a value that fastavro has read."""
    if isinstance(schema, str):
        return _expected_atom(value, schema)
    if isinstance(schema, list):
        return _expected_branch(value, schema)
    match schema["type"]:
        case "record":
            return {
                one["name"]: expected(value[one["name"]], one["type"]) for one in schema["fields"]
            }
        case "array":
            return [expected(one, schema["items"]) for one in value]
        case "map":
            return {key.encode(): expected(one, schema["values"]) for key, one in value.items()}
    return value.encode() if isinstance(value, str) else value


def _expected_atom(value: Any, schema: str) -> Any:
    if schema == "string":
        return value.encode()
    if schema == "float":
        # fastavro does not round what is promoted.
        number = np.int64(value) if isinstance(value, int) else value
        return repr(float(np.float32(number)))
    return repr(float(value)) if schema == "double" else value


def _expected_branch(value: Any, schema: list[Any]) -> Any:
    branches = [branch for branch in schema if branch != "null"]
    if value is None:
        return None
    if len(branches) == 1:
        return expected(value, branches[0])
    chosen = next(number for number, branch in enumerate(branches) if _is_of(value, branch))
    members: dict[str, Any] = {f"member{number}": None for number in range(len(branches))}
    members[f"member{chosen}"] = expected(value, branches[chosen])
    return members


def _is_of(value: Any, schema: Any) -> bool:
    name = schema if isinstance(schema, str) else schema["type"]
    kinds = {"boolean": bool, "int": int, "long": int, "double": float, "bytes": bytes}
    kinds["string"] = str
    kind = {**kinds, "array": list, "map": dict}[name]
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))
