"""Programs that decode Avro values: their operations, and compiling how values are read to them.

An operation is eight numbers of 64 bits: what to do, the column, three arguments, and the number of
the field's name for errors. Places in a program are in bytes from its beginning.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, cast, final

import numpy as np

from ....domain.values.avro_resolution import Conversion, Emitter
from ....domain.values.avro_schema import (
    MAX_DEPTH,
    Array,
    Enumeration,
    Fixed,
    Kind,
    Map,
    Primitive,
    Record,
    Reference,
    Union,
)
from ....domain.values.errors import FailureReason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ....domain.values.avro_resolution import Mismatch
    from ....domain.values.avro_schema import AvroSchema, AvroType
    from ...kernels.arrays import Int64Array
    from ..columns.layout import Column

SIZE: Final = 64
"""The bytes of an operation."""

COLUMN, A, B, C, NAME, D, E = range(8, SIZE, 8)

INT64, STRING, BINARY, DOUBLE, NULLABLE, SKIP_VARINT, SKIP_BYTES, SKIP_FIXED = range(8)
SKIP_NULLABLE, INT32, BOOLEAN, FLOAT, STRUCT, ENUM, NULL, UNION, JUMP, ENTER, NEXT = range(8, 19)
CLOSE_ARRAY, CLOSE_MAP, MEMBER, FIXED, DECIMAL, MULTIPLIED, DATE_OF_MILLIS = range(19, 26)
FLOAT_OF_INTEGER, DOUBLE_OF_INTEGER, DOUBLE_OF_FLOATED, DOUBLE_OF_FLOAT = range(26, 30)
DEFAULT, RESTORE, CALL, RETURN, FAIL, END = range(30, 36)
"""The operations. Most put a value of their name, and:

- ``INT64`` is a varint of at most ``A`` bytes, ``MULTIPLIED`` the same, times ``B``, and
  ``DOUBLE_OF_FLOATED`` a varint that is rounded to 32 bits first.
- ``NULLABLE`` puts a null and goes to ``B`` if the branch is ``A``; it continues if it is the other
  one of two. ``SKIP_NULLABLE`` is the same without a column. ``UNION`` goes to the place of a
  branch, one of ``A`` numbers at ``B``, and ``JUMP`` to ``A``.
- ``STRUCT`` puts a struct whose fields have all been put, ``MEMBER`` one whose other fields become
  null.
- ``ENUM`` puts one of ``A`` symbols. At ``B`` are the place of each, counted from there, and its
  length, -1 if the reader has none.
- ``ENTER`` begins an array or a map: no elements remain of its block. ``NEXT`` begins the next
  element, which has at least ``C`` bytes, or goes to ``B`` after the last one. ``A`` is the column
  of elements, or -1 if they are skipped.
- ``FIXED`` puts ``A`` bytes, and ``SKIP_FIXED`` skips them. ``DECIMAL`` has ``A`` bytes, -1 for a
  length before it. Its absolute value is below a limit of 128 bits, ``B`` the lower 64 of them and
  ``C`` the upper. It is multiplied by a power of ten, ``D`` and ``E``.
- ``DEFAULT`` reads on at ``B``, where there are ``A`` bytes, up to ``RESTORE``. ``CALL`` goes to
  ``A``, and on from there at the next ``RETURN``. ``FAIL`` fails for the reason ``A``.
"""

_NO_COLUMN: Final = -1
_INT_BYTES: Final = 5
_LONG_BYTES: Final = 10

_OF_INTEGERS: Final = {
    Conversion.INT32: INT32,
    Conversion.INT64: INT64,
    Conversion.MICROS_OF_MILLIS: MULTIPLIED,
    Conversion.MICROS_OF_DAYS: MULTIPLIED,
    Conversion.DATE_OF_MILLIS: DATE_OF_MILLIS,
    Conversion.FLOAT: FLOAT_OF_INTEGER,
    Conversion.DOUBLE: DOUBLE_OF_INTEGER,
    Conversion.DOUBLE_OF_FLOAT: DOUBLE_OF_FLOATED,
}

_FACTORS: Final = {
    Conversion.MICROS_OF_MILLIS: 1_000,
    Conversion.MICROS_OF_DAYS: 86_400_000_000,
}

_OTHERS: Final = {
    (Kind.BOOLEAN, Conversion.BOOLEAN): BOOLEAN,
    (Kind.FLOAT, Conversion.FLOAT): FLOAT,
    (Kind.FLOAT, Conversion.DOUBLE): DOUBLE_OF_FLOAT,
    (Kind.DOUBLE, Conversion.DOUBLE): DOUBLE,
    (Kind.STRING, Conversion.STRING): STRING,
    (Kind.BYTES, Conversion.STRING): STRING,
    (Kind.STRING, Conversion.BINARY): BINARY,
    (Kind.BYTES, Conversion.BINARY): BINARY,
}

_LEAST_BYTES: Final = {Kind.NULL: 0, Kind.FLOAT: 4, Kind.DOUBLE: 8}
_MAX_LEAST: Final = 2**40


@final
class DecodeProgram(Emitter):
    """Appends operations; places in what it has appended are counted in operations."""

    def __init__(self, columns: Sequence[Column], name_number: Callable[[str], int]) -> None:
        """Take the columns, and what returns the number of a field's name, for errors."""
        self._columns = columns
        self._name_number = name_number
        self._operations: list[list[int]] = []
        self._constants = bytearray()
        self._uses: list[int] = []
        self._calls: dict[tuple[int, str], tuple[AvroSchema, list[int]]] = {}
        self._least: dict[tuple[int, str], int] = {}

    def finish(self) -> Int64Array:
        """Return the operations, with the skipped records behind them, then the constants."""
        self._add(END)
        self._add_skipped_records()
        for place in self._uses:
            self._operations[place][B // 8] += SIZE * len(self._operations)
        words = [word for operation in self._operations for word in operation]
        data = struct.pack(f"<{len(words)}q", *words) + self._constants
        return np.frombuffer(data + bytes(-len(data) % 8), np.int64)

    def child(self, target: int, place: int) -> int:
        return self._columns[target].children[place]

    def skip(self, target: int, name: str, type_: AvroType, schema: AvroSchema) -> None:
        path = self._columns[target].path
        self._skip(type_, schema, f"{path}.{name}" if path else name)

    def null(self, target: int) -> None:
        self._add(NULL, target)

    def primitive(self, target: int, kind: Kind, conversion: Conversion) -> None:
        if kind in {Kind.INT, Kind.LONG}:
            size = _INT_BYTES if kind is Kind.INT else _LONG_BYTES
            self._add(_OF_INTEGERS[conversion], target, size, _FACTORS.get(conversion, 1))
        else:
            self._add(_OTHERS[kind, conversion], target)

    def fixed(self, target: int, size: int) -> None:
        self._add(FIXED, target, size)

    def decimal(self, target: int, size: int | None, precision: int, added_scale: int) -> None:
        place = self._add(DECIMAL, target, -1 if size is None else size, *_words(10**precision))
        self._operations[place][D // 8 :] = _words(10**added_scale)

    def enumeration(self, target: int, symbols: Sequence[str | None]) -> None:
        self._add(ENUM, target, len(symbols))
        self._use_constant(_symbol_table(symbols))

    def mismatch(self, target: int, found: Mismatch) -> None:
        self._add(FAIL, target, int(FailureReason.INCOMPATIBLE_SCHEMA), path=found.path)

    def end_struct(self, target: int, *, is_member: bool) -> None:
        self._add(MEMBER if is_member else STRUCT, target)

    def array(
        self, target: int, items: AvroType, schema: AvroSchema, add: Callable[[int], None]
    ) -> None:
        column = self._columns[target]
        least, child = self._least_bytes(items, schema), column.children[0]
        self._loop(lambda: add(child), child, column.path, least)
        self._add(CLOSE_ARRAY, target)

    def map(self, target: int, add: Callable[[int], None]) -> None:
        (entries,) = self._columns[target].children
        key, value = self._columns[entries].children

        def add_entry() -> None:
            self._add(STRING, key)
            add(value)
            self._add(STRUCT, entries)

        self._loop(add_entry, entries, self._columns[target].path, 1)
        self._add(CLOSE_MAP, target)

    def union(
        self, target: int, count: int, nulls: Sequence[int], add: Callable[[int], None]
    ) -> None:
        if count == 2 and len(nulls) == 1:
            place = self._add(NULLABLE, target, nulls[0])
            add(1 - nulls[0])
            self._operations[place][B // 8] = self._here()
        else:
            self._choose(count, add, self._columns[target].path)

    def default(self, target: int, data: bytes, add: Callable[[], None]) -> None:
        place = self._add(DEFAULT, a=len(data), path=self._columns[target].path)
        self._use_constant(data, place)
        add()
        self._add(RESTORE)

    def _choose(self, count: int, add_branch: Callable[[int], None], path: str) -> None:
        place = self._add(UNION, a=count, path=path)
        targets, jumps = [], []
        for number in range(count):
            targets.append(self._here())
            add_branch(number)
            jumps.append(self._add(JUMP))
        for jump in jumps:
            self._operations[jump][A // 8] = self._here()
        self._use_constant(struct.pack(f"<{count}q", *targets), place)

    def _loop(self, add_body: Callable[[], None], child: int, path: str, least: int) -> None:
        self._add(ENTER, path=path)
        place = self._add(NEXT, a=child, c=least, path=path)
        add_body()
        self._add(JUMP, a=SIZE * place)
        self._operations[place][B // 8] = self._here()

    def _skip(self, type_: AvroType, schema: AvroSchema, path: str) -> None:
        match type_:
            case Primitive(Kind.STRING | Kind.BYTES):
                self._add(SKIP_BYTES, path=path)
            case Primitive(Kind.INT | Kind.LONG) | Enumeration():
                self._add(SKIP_VARINT, path=path)
            case Primitive() | Fixed():
                self._skip_bytes(self._least_bytes(type_, schema), path)
            case Record(name) | Reference(name):
                _, calls = self._calls.setdefault((id(schema), name), (schema, []))
                calls.append(self._add(CALL, path=path))
            case Union(branches):
                self._skip_union(branches, schema, path)
            case Array(items):
                least = self._least_bytes(items, schema)
                self._loop(lambda: self._skip(items, schema, path), _NO_COLUMN, path, least)
            case Map(values):
                self._loop(lambda: self._skip_entry(values, schema, path), _NO_COLUMN, path, 1)

    def _skip_bytes(self, size: int, path: str) -> None:
        if size:
            self._add(SKIP_FIXED, a=size, path=path)

    def _skip_entry(self, values: AvroType, schema: AvroSchema, path: str) -> None:
        self._add(SKIP_BYTES, path=path)
        self._skip(values, schema, path)

    def _skip_union(self, branches: Sequence[AvroType], schema: AvroSchema, path: str) -> None:
        nulls = [number for number, branch in enumerate(branches) if branch.name == "null"]
        if len(branches) == 2 and nulls:
            place = self._add(SKIP_NULLABLE, a=nulls[0], path=path)
            self._skip(branches[1 - nulls[0]], schema, path)
            self._operations[place][B // 8] = self._here()
            return
        self._choose(len(branches), lambda one: self._skip(branches[one], schema, path), path)

    def _add_skipped_records(self) -> None:
        """Add each skipped record once: records may contain themselves."""
        places: dict[tuple[int, str], int] = {}
        while missing := self._calls.keys() - places.keys():
            for key in [key for key in self._calls if key in missing]:
                places[key] = self._here()
                schema, _ = self._calls[key]
                for field in cast("Record", schema.named[key[1]]).fields:
                    self._skip(field.type, schema, field.name)
                self._add(RETURN)
        for key, (_, calls) in self._calls.items():
            for call in calls:
                self._operations[call][A // 8] = places[key]

    def _least_bytes(self, type_: AvroType, schema: AvroSchema, depth: int = 0) -> int:
        """Return how many bytes a value has at least."""
        match type_:
            case Primitive(kind):
                return _LEAST_BYTES.get(kind, 1)
            case Fixed(_, size):
                return size
            case Record(name) | Reference(name):
                return self._least_bytes_of_record(name, schema, depth)
        return 1

    def _least_bytes_of_record(self, name: str, schema: AvroSchema, depth: int) -> int:
        key = (id(schema), name)
        if depth > MAX_DEPTH:
            return 0
        if key not in self._least:
            self._least[key] = 0
            fields = cast("Record", schema.named[name]).fields
            least = sum(self._least_bytes(field.type, schema, depth + 1) for field in fields)
            self._least[key] = min(least, _MAX_LEAST)
        return self._least[key]

    def _here(self) -> int:
        """Return the place of the next operation, in bytes."""
        return SIZE * len(self._operations)

    def _add(
        self,
        operation: int,
        column: int = _NO_COLUMN,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        path: str | None = None,
    ) -> int:
        """Add an operation; its name for errors is its column's unless there is a path."""
        if path is None:
            path = self._columns[column].path if column >= 0 else ""
        name = self._name_number(path)
        self._operations.append([operation, column, a, b, c, name, 0, 0])
        return len(self._operations) - 1

    def _use_constant(self, data: bytes, place: int = -1) -> None:
        """Let ``B`` of an operation, the last one by default, be the place of a constant."""
        place = place % len(self._operations)
        self._operations[place][B // 8] = len(self._constants)
        self._constants += data + bytes(-len(data) % 8)
        self._uses.append(place)


def _words(number: int) -> tuple[int, int]:
    """Return the lower and the upper 64 of 128 bits."""
    low, high = struct.unpack("<qq", number.to_bytes(16, "little"))
    return low, high


def _symbol_table(symbols: Sequence[str | None]) -> bytes:
    """Return the place, from the table on, and the length of each symbol, then the symbols."""
    entries, texts = bytearray(), bytearray()
    for symbol in symbols:
        encoded = b"" if symbol is None else symbol.encode()
        place = 16 * len(symbols) + len(texts)
        entries += struct.pack("<qq", place, -1 if symbol is None else len(encoded))
        texts += encoded
    return bytes(entries + texts)
