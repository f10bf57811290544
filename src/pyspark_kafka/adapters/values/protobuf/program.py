"""The program of a message and a wanted type, in the tables of ``program_layout``."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast, final

import numpy as np
from google.protobuf.descriptor import FieldDescriptor

from ....domain.values.data_types import ArrayType, MapType, StructField, StructType, find_named
from ....ports.values.value_types import arrow_type
from ..columns.layout import BYTES, ROOT, columns_of
from . import program_layout as at
from . import wire_kernel as wire
from .invalid_descriptor import InvalidDescriptorError
from .spark_types import (
    DUMMY,
    FIELD_KINDS,
    UINT64,
    Shape,
    inner_message,
    is_repeated,
    is_required,
    shape_of,
    value_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from google.protobuf.descriptor import Descriptor, EnumDescriptor

    from ....domain.values.data_types import DataType
    from ...kernels.arrays import Array, Int64Array
    from ..columns.layout import Column
    from .spark_types import ProtobufSettings

MAX_DENSE_TAG: Final = 256 * 8
"""Tags below it are found by index: of field numbers below 256."""

_Action = dict[int, int]
_Step = dict[int, int]

_F: Final = FieldDescriptor
_STORES: Final = {"boolean": at.BITS_8, "int": at.BITS_32, "float": at.BITS_32}
_OTHER_WIRES: Final = (wire.VARINT, wire.FIXED_64, wire.SIZED, wire.GROUP, wire.FIXED_32)
_VERIFY: Final = 2
"""``FeatureSet.Utf8Validation.VERIFY``."""


@final
@dataclass(frozen=True, slots=True)
class Program:
    """The tables: ``root`` is the address of the outermost message's node."""

    root: int
    actions: int
    slots: int
    columns: tuple[Column, ...]
    any_columns: Sequence[int]
    """The columns of messages that become JSON."""
    tables: Sequence[Array]
    """The arrays that the addresses point to."""


def compile_program(message: Descriptor, wanted: StructType, settings: ProtobufSettings) -> Program:
    """Return the program that decodes the fields of a wanted type.

    :raises InvalidDescriptorError: if the message does not have a field in that type.
    """
    columns = columns_of(arrow_type(wanted))
    return _Compiler(settings, columns).program(message, wanted)


@final
@dataclass(slots=True)
class _Node:
    tags: dict[int, int]
    steps: list[_Step]
    cells: int


@final
@dataclass(slots=True)
class _Place:
    """The state of compiling the fields of one message."""

    path: str
    is_outermost: bool = False
    entry_slot: int | None = None
    """In the entry of a map: the slot that is set to drop the entry."""
    tags: dict[int, int] = field(default_factory=dict)
    steps: list[_Step] = field(default_factory=list)


@final
class _Compiler:
    def __init__(self, settings: ProtobufSettings, columns: tuple[Column, ...]) -> None:
        self._settings = settings
        self._columns = columns
        self._nodes: list[_Node] = []
        self._actions: list[_Action] = []
        self._slots = 0
        self._enums: dict[str, int] = {}
        self._any_columns: list[int] = []
        self._tables: list[Array] = []

    def program(self, message: Descriptor, wanted: StructType) -> Program:
        place = _Place("", is_outermost=True)
        self._fields(place, message, wanted, ROOT)
        self._refuse_other_types(place, message, wanted)
        place.steps.append(_step(at.CLOSE_STRUCT, ROOT))
        root = self._node(place, ROOT)
        nodes, actions = self._assemble()
        address = nodes.ctypes.data + root * at.NODE_STRIDE
        return Program(
            address,
            actions.ctypes.data,
            self._slots,
            self._columns,
            tuple(self._any_columns),
            tuple(self._tables),
        )

    # Messages.

    def _fields(self, place: _Place, message: Descriptor, wanted: StructType, column: int) -> None:
        """Compile the fields of a message into the struct that is a column."""
        found: dict[int, tuple[DataType, int]] = {}
        for wanted_field, child in zip(wanted.fields, self._columns[column].children, strict=True):
            one = self._find(message, wanted_field, place)
            if one is not None and one.number in found:
                name = f"{place.path}{wanted_field.name}"
                raise InvalidDescriptorError(f"the query has the field '{name}' twice")
            if one is not None:
                found[one.number] = wanted_field.type, child
        oneofs = self._oneofs(place, message, found)
        for one in message.fields:
            oneof = oneofs.get(one.number, -1)
            if one.number in found:
                self._wanted(place, one, *found[one.number], oneof)
            elif is_required(one) or oneof >= 0:
                self._unwanted(place, one, oneof)

    def _oneofs(
        self, place: _Place, message: Descriptor, found: Iterable[int]
    ) -> Mapping[int, int]:
        """Return slots by the numbers of fields: of oneofs that have a wanted field."""
        slots: dict[int, int] = {}
        for oneof in message.oneofs:
            numbers = [one.number for one in oneof.fields]
            if len(numbers) > 1 and not set(numbers).isdisjoint(found):
                slots |= dict.fromkeys(numbers, self._new_slots(1))
                place.steps.append(_step(at.CLEAR_SLOT, slot=slots[numbers[0]]))
        return slots

    def _find(
        self, message: Descriptor, wanted: StructField, place: _Place
    ) -> FieldDescriptor | None:
        found = find_named(message.fields, wanted.name)
        if found is not None:
            return found
        if wanted.name == DUMMY and self._settings.retain_empty:
            return None
        raise InvalidDescriptorError(
            f"the message '{message.full_name}' has no field '{place.path}{wanted.name}'"
        )

    def _unwanted(self, place: _Place, one: FieldDescriptor, oneof: int) -> None:
        """Note that a field was present whose value is not wanted."""
        slot = -1
        if is_required(one):
            slot = self._new_slots(1)
            place.steps.append(_step(at.REQUIRE_SLOT, slot=slot))
            place.steps.append(_step(at.CLEAR_SLOT, slot=slot))
        self._act(place, one, {at.ACTION: at.SKIP, at.SLOT: slot, at.ONEOF: oneof})

    def _wanted(
        self, place: _Place, one: FieldDescriptor, wanted: DataType, column: int, oneof: int
    ) -> None:
        shape = shape_of(one, self._settings)
        if shape is Shape.MAP:
            self._map(place, one, wanted, column)
            return
        element = wanted
        if is_repeated(one):
            if not isinstance(wanted, ArrayType):
                raise _wrong_type(place, one, "an array", wanted)
            element = wanted.element
            place.steps.append(_step(at.CLOSE_LIST, column))
            column += 1
        if shape is Shape.MESSAGE:
            if not isinstance(element, StructType):
                raise _wrong_type(place, one, "a message", wanted)
            self._message(place, one, element, column, oneof)
            return
        right = value_type(one, shape, self._settings)
        if element != right:
            raise _wrong_type(place, one, str(right), element)
        if shape in {Shape.TIMESTAMP, Shape.DURATION}:
            self._time(place, one, column, oneof)
        elif shape is Shape.WRAPPER:
            self._wrapper(place, one, right, column, oneof)
        elif shape is Shape.ANY:
            self._any(place, one, column, oneof)
        else:
            self._value(place, one, right, column, oneof)

    def _message(
        self, place: _Place, one: FieldDescriptor, wanted: StructType, column: int, oneof: int
    ) -> None:
        inner = _Place(f"{place.path}{one.name}.")
        if is_repeated(one):
            self._fields(inner, inner_message(one), wanted, column)
            inner.steps.append(_step(at.CLOSE_STRUCT, column))
            self._act(place, one, self._descend(one, column, self._node(inner, column)))
            return
        slot = self._new_slots(1)
        self._fields(inner, inner_message(one), wanted, column)
        steps = [*inner.steps, _step(at.CLOSE_STRUCT, column)]
        inner.steps = []
        self._act(place, one, self._descend(one, column, self._node(inner, column), slot, oneof))
        if place.entry_slot is not None:
            # A map's value that is absent is an empty message.
            place.steps += steps
            return
        self._require_slot(place, one, column, slot)
        place.steps.append(_step(at.BEGIN_MESSAGE, column, slot, len(steps)))
        place.steps += steps

    def _time(self, place: _Place, one: FieldDescriptor, column: int, oneof: int) -> None:
        slot = self._new_slots(3)
        seconds, nanos = inner_message(one).fields
        inner = _Place("")
        self._act(inner, seconds, {at.ACTION: at.SECONDS, at.COLUMN: column, at.SLOT: slot})
        self._act(inner, nanos, {at.ACTION: at.NANOS, at.COLUMN: column, at.SLOT: slot})
        put = _step(at.PUT_TIME, column, slot, int(place.entry_slot is not None))
        if is_repeated(one):
            inner.steps.append(put)
        else:
            self._require_slot(place, one, column, slot)
            place.steps.append(put)
        self._act(place, one, self._descend(one, column, self._node(inner, column), slot, oneof))

    def _wrapper(
        self, place: _Place, one: FieldDescriptor, kind: DataType, column: int, oneof: int
    ) -> None:
        """Compile a wrapper whose value takes its place (``unwrap.primitive.wrapper.types``)."""
        inner = _Place("")
        slot = self._new_slots(1)
        self._value(inner, inner_message(one).fields[0], kind, column, -1)
        steps = inner.steps
        inner.steps = []
        if is_repeated(one) or place.entry_slot is not None:
            steps.append(_step(at.NULL_ELEMENT, column))
        if is_repeated(one):
            inner.steps = [*steps, _step(at.CLEAR_SLOT, slot=slot)]
        elif place.entry_slot is not None:
            place.steps += [*steps, _step(at.CLEAR_SLOT, slot=slot)]
        else:
            self._require_slot(place, one, column, slot)
            place.steps.append(_step(at.BEGIN_MESSAGE, column, slot, len(steps)))
            place.steps += steps
        self._act(place, one, self._descend(one, column, self._node(inner, column), slot, oneof))

    def _any(self, place: _Place, one: FieldDescriptor, column: int, oneof: int) -> None:
        """Compile a message whose bytes are kept, to be shown as JSON (``AnyJson``)."""
        self._any_columns.append(column)
        flags = at.REPEATED * is_repeated(one) | at.MERGED
        action = {at.ACTION: at.BYTES, at.COLUMN: column, at.FLAGS: flags, at.ONEOF: oneof}
        self._act(place, one, action)
        if is_required(one):
            place.steps.append(_step(at.REQUIRE_VALUE, column))
        elif place.entry_slot is not None:
            place.steps.append(_step(at.PUT_DEFAULT_BYTES, column))

    def _descend(
        self, one: FieldDescriptor, column: int, node: int, slot: int = -1, oneof: int = -1
    ) -> _Action:
        flags = at.REPEATED * is_repeated(one) | at.DELIMITED * (one.type == _F.TYPE_GROUP)
        return {
            at.ACTION: at.MESSAGE,
            at.COLUMN: column,
            at.FLAGS: flags,
            at.NODE: node,
            at.SLOT: slot,
            at.SLOT_END: self._slots if slot >= 0 else -1,
            at.ONEOF: oneof,
        }

    def _require_slot(self, place: _Place, one: FieldDescriptor, column: int, slot: int) -> None:
        if is_required(one):
            place.steps.append(_step(at.REQUIRE_SLOT, column, slot))

    def _map(self, place: _Place, one: FieldDescriptor, wanted: DataType, column: int) -> None:
        if not isinstance(wanted, MapType):
            raise _wrong_type(place, one, "a map", wanted)
        entries = column + 1
        key, value = (inner_message(one).fields_by_name[name] for name in ("key", "value"))
        inner = _Place(f"{place.path}{one.name}.", place.is_outermost, self._new_slots(1))
        first, second = self._columns[entries].children
        self._wanted(inner, key, wanted.key, first, -1)
        self._wanted(inner, value, wanted.value, second, -1)
        inner.steps.append(_step(at.DROP_ENTRY, entries, inner.entry_slot or 0))
        inner.steps.append(_step(at.CLOSE_STRUCT, entries))
        self._act(place, one, self._descend(one, entries, self._node(inner, entries)))
        width = self._columns[first].width if self._columns[first].kind != BYTES else 0
        place.steps.append({**_step(at.CLOSE_MAP, column), at.STEP_SIZE: width})

    # Values.

    def _value(
        self, place: _Place, one: FieldDescriptor, kind: DataType, column: int, oneof: int
    ) -> None:
        is_entry = place.entry_slot is not None
        slot = -1 if place.entry_slot is None else place.entry_slot
        is_implicit = not one.has_presence and not is_repeated(one)
        emits_zero = is_entry or (is_implicit and self._settings.emit_defaults)
        action: _Action = {
            at.ACTION: at.BYTES if one.type in _TEXTS else at.SCALAR,
            at.COLUMN: column,
            at.FLAGS: self._value_flags(place, one, is_implicit and not emits_zero),
            at.CONVERT: self._convert(one, kind),
            at.STORE: _store(kind),
            at.ENUM: self._enum(one.enum_type) if one.enum_type is not None else 0,
            at.SLOT: slot,
            at.SLOT_END: slot,
            at.ONEOF: oneof,
            at.WIRE: FIELD_KINDS[one.type].wire,
        }
        self._act(place, one, action)
        if is_repeated(one) and one.type not in _TEXTS:
            number = self._add({**action, at.ACTION: at.PACKED})
            place.tags[one.number << 3 | wire.SIZED] = number
        if is_required(one):
            place.steps.append(_step(at.REQUIRE_VALUE, column))
        elif (one.has_default_value or emits_zero) and not is_repeated(one):
            place.steps.append(self._default(one, kind, column))

    def _value_flags(self, place: _Place, one: FieldDescriptor, is_implicit: bool) -> int:
        flags = at.REPEATED * is_repeated(one) | at.IMPLICIT * is_implicit
        if one.type == _F.TYPE_STRING:
            # As needsUtf8Check of Java's FieldDescriptor.
            features: Any = one
            verifies = features._GetFeatures().utf8_validation == _VERIFY  # noqa: SLF001  # the one way
            is_strict = verifies or place.entry_slot is not None
            flags |= at.STRICT if is_strict else at.LOOSE
        return flags | at.OUTERMOST * place.is_outermost

    def _convert(self, one: FieldDescriptor, kind: DataType) -> int:
        if one.type == _F.TYPE_ENUM:
            return at.KNOWN_ENUM if self._settings.enums_as_ints else at.ENUM_NAME
        if one.type == _F.TYPE_UINT32 and str(kind) == "bigint":
            return at.UNSIGNED_32
        return FIELD_KINDS[one.type].convert

    def _default(self, one: FieldDescriptor, kind: DataType, column: int) -> _Step:
        value: Any = one.default_value
        if one.type == _F.TYPE_ENUM and not self._settings.enums_as_ints:
            value = cast("EnumDescriptor", one.enum_type).values_by_number[value].name
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, bytes):
            address = self._keep(np.frombuffer(value or b"\0", np.uint8))
            step = _step(at.PUT_DEFAULT_BYTES, column, 0, address)
            return {**step, at.STEP_SIZE: len(value)}
        if one.type == _F.TYPE_FLOAT:
            value = struct.unpack("<i", struct.pack("<f", value))[0]
        elif one.type == _F.TYPE_DOUBLE:
            value = struct.unpack("<q", struct.pack("<d", value))[0]
        signed = int(np.uint64(int(value) % 2**64).astype(np.int64))
        return {**_step(at.PUT_DEFAULT, column, 0, signed), at.STEP_STORE: _store(kind)}

    def _enum(self, enum: EnumDescriptor) -> int:
        """Return the address of an enum's table."""
        if enum.full_name not in self._enums:
            names: dict[int, bytes] = {}
            for one in enum.values:
                names.setdefault(one.number, one.name.encode())  # the first of several, as Java
            prefix = f"UNKNOWN_ENUM_VALUE_{enum.name}_".encode()
            texts = [prefix, *names.values()]
            address = self._keep(np.frombuffer(b"".join(texts), np.uint8))
            words = [len(names), int(enum.is_closed), address, len(prefix)]
            places = dict(zip(names, _places(address + len(prefix), names.values()), strict=True))
            for number in sorted(names):
                words += [number, places[number], len(names[number])]
            self._enums[enum.full_name] = self._keep(np.array(words, np.int64))
        return self._enums[enum.full_name]

    # Tables.

    def _refuse_other_types(self, place: _Place, message: Descriptor, wanted: StructType) -> None:
        """Refuse a wanted field that has another wire type.

        Spark refuses a record whose unknown fields have the number of a known one
        (``ProtobufDataToCatalyst``); it checks the outermost message only.
        """
        for one, column in zip(wanted.fields, self._columns[ROOT].children, strict=True):
            found = self._find(message, one, place)
            if found is None:
                continue
            action = self._add({at.ACTION: at.MISMATCH, at.COLUMN: column})
            for other in _OTHER_WIRES:
                place.tags.setdefault(found.number << 3 | other, action)

    def _act(self, place: _Place, one: FieldDescriptor, action: _Action) -> None:
        place.tags[one.number << 3 | FIELD_KINDS[one.type].wire] = self._add(action)
        is_packable = is_repeated(one) and FIELD_KINDS[one.type].wire == wire.VARINT
        if action[at.ACTION] == at.SKIP and is_packable:
            place.tags[one.number << 3 | wire.SIZED] = self._add(action)

    def _add(self, action: _Action) -> int:
        self._actions.append({at.COLUMN: -1, at.SLOT: -1, at.SLOT_END: -1, at.ONEOF: -1, **action})
        return len(self._actions) - 1

    def _node(self, place: _Place, column: int) -> int:
        cells = self._columns[column].end - column
        self._nodes.append(_Node(place.tags, place.steps, cells))
        return len(self._nodes) - 1

    def _new_slots(self, count: int) -> int:
        self._slots += count
        return self._slots - count

    def _keep(self, table: Array) -> int:
        self._tables.append(table)
        return table.ctypes.data

    def _assemble(self) -> tuple[Int64Array, Int64Array]:
        nodes = np.zeros((len(self._nodes), at.NODE_STRIDE // 8), np.int64)
        actions = np.zeros((max(len(self._actions), 1), at.ACTION_STRIDE // 8), np.int64)
        self._tables += [nodes, actions]
        for number, node in enumerate(self._nodes):
            nodes[number] = self._node_words(node)
        for number, action in enumerate(self._actions):
            for place, value in action.items():
                actions[number, place // 8] = value
            if at.NODE in action:
                address = nodes.ctypes.data + action[at.NODE] * at.NODE_STRIDE
                actions[number, at.NODE // 8] = address
        return nodes, actions

    def _node_words(self, node: _Node) -> list[int]:
        dense = {tag: action for tag, action in node.tags.items() if tag < MAX_DENSE_TAG}
        tags = np.full(max(dense, default=-1) + 1, -1, np.int32)
        for tag, action in dense.items():
            tags[tag] = action
        large = sorted(item for item in node.tags.items() if item[0] >= MAX_DENSE_TAG)
        steps = np.zeros((len(node.steps), at.STEP_STRIDE // 8), np.int64)
        for number, step in enumerate(node.steps):
            for place, value in step.items():
                steps[number, place // 8] = value
        addresses = [self._keep(tags), self._keep(np.array(large, np.int64)), self._keep(steps)]
        counts = [len(tags), len(large), len(steps)]
        pairs = [number for pair in zip(addresses, counts, strict=True) for number in pair]
        return [*pairs, node.cells, 0]


_TEXTS: Final = (_F.TYPE_STRING, _F.TYPE_BYTES)


def _step(kind: int, column: int = -1, slot: int = 0, value: int = 0) -> _Step:
    return {at.STEP: kind, at.STEP_COLUMN: column, at.STEP_SLOT: slot, at.STEP_VALUE: value}


def _store(kind: DataType) -> int:
    if kind == UINT64:
        return at.DECIMAL
    if str(kind) in {"string", "binary"}:
        return at.TEXT
    return _STORES.get(str(kind), at.BITS_64)


def _places(start: int, texts: Iterable[bytes]) -> Iterator[int]:
    for text in texts:
        yield start
        start += len(text)


def _wrong_type(
    place: _Place, one: FieldDescriptor, right: str, wanted: DataType
) -> InvalidDescriptorError:
    name = f"{place.path}{one.name}"
    return InvalidDescriptorError(f"the field '{name}' is {right}, and the query has {wanted}")
