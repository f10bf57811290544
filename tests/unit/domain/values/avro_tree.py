"""A tree of how values are read, made of what a resolution emits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from pyspark_kafka.domain.values.avro_resolution import Conversion, Emitter, Mismatch, resolve
from pyspark_kafka.domain.values.avro_schema import AvroSchema, AvroType, Kind
from pyspark_kafka.domain.values.avro_types import NUMBERED, AvroTypeOptions
from pyspark_kafka.domain.values.data_types import StructType


@dataclass(frozen=True, slots=True)
class Skip:
    name: str
    type: AvroType
    schema: AvroSchema


@dataclass(frozen=True, slots=True)
class ReadNull:
    """A null, which takes no bytes."""


@dataclass(frozen=True, slots=True)
class ReadPrimitive:
    kind: Kind
    conversion: Conversion


@dataclass(frozen=True, slots=True)
class ReadFixed:
    size: int


@dataclass(frozen=True, slots=True)
class ReadDecimal:
    """A decimal of at most ``precision`` digits, in ``size`` bytes or with a length before them.

    The column has ``added_scale`` more digits behind the point.
    """

    size: int | None
    precision: int
    added_scale: int = 0


@dataclass(frozen=True, slots=True)
class ReadEnumeration:
    """A symbol, by the writer's numbers; ``None`` is one that the reader does not have."""

    symbols: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A value in a record: ``field`` is its place in the struct, or ``None`` if it is skipped."""

    field: int | None
    node: Node


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """The fields of the writer in their order, then the defaults of fields that it lacks."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class ReadArray:
    element: Node
    items: AvroType
    schema: AvroSchema


@dataclass(frozen=True, slots=True)
class ReadMap:
    value: Node


@dataclass(frozen=True, slots=True)
class ReadUnion:
    """A value behind the number of its branch."""

    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ReadMember:
    """A value of the reader's union, which is a struct: one field is set, all others are null."""

    step: Step


@dataclass(frozen=True, slots=True)
class ReadDefault:
    data: bytes
    node: Node


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


@final
class Tree(Emitter):
    """Makes nodes of values; those of a struct that has not ended wait for it."""

    def __init__(self) -> None:
        self._places: list[tuple[int, int | None]] = [(-1, 0)]
        self._waiting: list[tuple[int, Node]] = []

    @property
    def root(self) -> Node:
        ((target, node),) = self._waiting
        assert target == 0
        return node

    def child(self, target: int, place: int) -> int:
        return self._new(target, place)

    def skip(self, target: int, name: str, type_: AvroType, schema: AvroSchema) -> None:
        self._put(self._new(target, None), Skip(name, type_, schema))

    def null(self, target: int) -> None:
        self._put(target, ReadNull())

    def primitive(self, target: int, kind: Kind, conversion: Conversion) -> None:
        self._put(target, ReadPrimitive(kind, conversion))

    def fixed(self, target: int, size: int) -> None:
        self._put(target, ReadFixed(size))

    def decimal(self, target: int, size: int | None, precision: int, added_scale: int) -> None:
        self._put(target, ReadDecimal(size, precision, added_scale))

    def enumeration(self, target: int, symbols: Sequence[str | None]) -> None:
        self._put(target, ReadEnumeration(tuple(symbols)))

    def mismatch(self, target: int, found: Mismatch) -> None:
        self._put(target, found)

    def end_struct(self, target: int, *, is_member: bool) -> None:
        steps: list[Step] = []
        while self._waiting and self._places[self._waiting[-1][0]][0] == target:
            child, node = self._waiting.pop()
            steps.insert(0, Step(self._places[child][1], node))
        self._put(target, ReadMember(*steps) if is_member else ReadRecord(tuple(steps)))

    def array(
        self, target: int, items: AvroType, schema: AvroSchema, add: Callable[[int], None]
    ) -> None:
        add(self._new(target, 0))
        self._put(target, ReadArray(self._taken(), items, schema))

    def map(self, target: int, add: Callable[[int], None]) -> None:
        add(self._new(target, 1))
        self._put(target, ReadMap(self._taken()))

    def union(
        self, target: int, count: int, nulls: Sequence[int], add: Callable[[int], None]
    ) -> None:
        branches: list[Node] = []
        for number in range(count):
            add(number)
            branches.append(self._taken())
        assert [number for number, one in enumerate(branches) if one == ReadNull()] == [*nulls]
        self._put(target, ReadUnion(tuple(branches)))

    def default(self, target: int, data: bytes, add: Callable[[], None]) -> None:
        add()
        self._put(target, ReadDefault(data, self._taken()))

    def _new(self, target: int, place: int | None) -> int:
        self._places.append((target, place))
        return len(self._places) - 1

    def _put(self, target: int, node: Node) -> None:
        self._waiting.append((target, node))

    def _taken(self) -> Node:
        return self._waiting.pop()[1]


def resolved(
    writer: AvroSchema, reader: AvroSchema, wanted: StructType, options: AvroTypeOptions = NUMBERED
) -> Node:
    """Return how the wanted fields are read."""
    tree = Tree()
    found = resolve(writer, reader, wanted, tree, options)
    assert found == [*mismatches(tree.root)]
    return tree.root


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
