"""The data types of typed values, named as Spark names them, and their text in Spark's DDL.

PySpark's own parser of DDL needs a ``SparkContext``, which the process that plans a query does not
have. The grammar is ``colTypeList`` of Spark's ``SqlBaseParser.g4``: columns separated by commas,
each a name, a type, and perhaps ``NOT NULL`` and a comment, which are accepted and without effect,
as in ``from_json``. The fields of a nested struct may have a colon after their names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar, final

from ..text import excerpt

MAX_PRECISION: Final = 38
"""The digits of a decimal (``DecimalType.MAX_PRECISION``)."""


class Named(Protocol):
    """An object with a name."""

    @property
    def name(self) -> str:
        """Its name."""


N = TypeVar("N", bound=Named)


@final
@dataclass(frozen=True, slots=True)
class AtomicType:
    """A type without parameters; ``name`` is its name in DDL."""

    name: str

    def __str__(self) -> str:
        return self.name


BOOLEAN: Final = AtomicType("boolean")
BYTE: Final = AtomicType("tinyint")
SHORT: Final = AtomicType("smallint")
INTEGER: Final = AtomicType("int")
LONG: Final = AtomicType("bigint")
FLOAT: Final = AtomicType("float")
DOUBLE: Final = AtomicType("double")
STRING: Final = AtomicType("string")
BINARY: Final = AtomicType("binary")
DATE: Final = AtomicType("date")
TIMESTAMP: Final = AtomicType("timestamp")
TIMESTAMP_NTZ: Final = AtomicType("timestamp_ntz")
DAY_TIME_INTERVAL: Final = AtomicType("interval day to second")


@final
@dataclass(frozen=True, slots=True)
class DecimalType:
    """An exact number of ``precision`` digits, ``scale`` of them behind the point."""

    precision: int = 10
    scale: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= MAX_PRECISION:
            raise ValueError(f"a decimal has 1 to {MAX_PRECISION} digits, got {self.precision}")
        if not 0 <= self.scale <= self.precision:
            raise ValueError(f"the scale of {self} must be between 0 and {self.precision}")

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@final
@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array of elements that may be null."""

    element: DataType

    def __str__(self) -> str:
        return f"array<{self.element}>"


@final
@dataclass(frozen=True, slots=True)
class MapType:
    """A map whose keys are never null, and whose values may be."""

    key: DataType
    value: DataType

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@final
@dataclass(frozen=True, slots=True)
class StructField:
    """A field of a struct; every field may be null."""

    name: str
    type: DataType

    def __str__(self) -> str:
        return f"{quoted_name(self.name)}:{self.type}"


@final
@dataclass(frozen=True, slots=True)
class StructType:
    """A struct of named fields, in order."""

    fields: tuple[StructField, ...]

    def __str__(self) -> str:
        return f"struct<{','.join(map(str, self.fields))}>"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields, in order."""
        return tuple(field.name for field in self.fields)


DataType: TypeAlias = AtomicType | DecimalType | ArrayType | MapType | StructType


def find_named(items: Sequence[N], name: str) -> N | None:
    """Return the item of a name, or else the only one of it in another case, as Spark does."""
    exact = [item for item in items if item.name == name]
    other = [item for item in items if item.name.lower() == name.lower()]
    return exact[0] if exact else other[0] if len(other) == 1 else None


def quoted_name(name: str) -> str:
    """Return a field's name as DDL has to spell it: in backticks unless it is a plain word."""
    is_plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    return name if is_plain else "`" + name.replace("`", "``") + "`"


MAX_DDL_LENGTH: Final = 1_048_576
"""The characters of a schema."""

MAX_DDL_DEPTH: Final = 64
"""How deeply types may be nested."""

MAX_DDL_FIELDS: Final = 10_000
"""The fields of a schema, nested ones included."""

_ATOMIC: Final = {
    "boolean": BOOLEAN,
    "tinyint": BYTE,
    "byte": BYTE,
    "smallint": SHORT,
    "short": SHORT,
    "int": INTEGER,
    "integer": INTEGER,
    "bigint": LONG,
    "long": LONG,
    "float": FLOAT,
    "real": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "binary": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}

_DECIMAL: Final = frozenset({"decimal", "dec", "numeric"})

_UNSUPPORTED: Final = {
    "char": "use 'string'",
    "character": "use 'string'",
    "varchar": "use 'string'",
    "variant": "read the column as 'string', and call parse_json in the query",
    "time": "read the column as 'string'",
    "void": "leave the field out",
    "null": "leave the field out",
}

_TOKEN: Final = re.compile(
    r"""(?:\s|--[^\r\n]*|/\*.*?\*/)*(?:
      (?P<quoted>`(?:[^`]|``)*`)
    | (?P<text>(?:'(?:[^'\\]|\\.)*')+|(?:"(?:[^"\\]|\\.)*")+)
    | (?P<word>\w+)
    | (?P<mark>[<>(),:])
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)


def parse_struct(text: str) -> StructType:
    """Parse columns as in ``a int, b struct<c: string>``, or one type ``struct<...>``.

    :raises ValueError: if it is not such a schema, or too large or too deep.
    """
    if len(text) > MAX_DDL_LENGTH:
        raise ValueError(f"the schema has more than {MAX_DDL_LENGTH:,} characters")
    return _Parser(text).parse()


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


@final
class _Parser:
    """Reads a schema from left to right, one token ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self._fields = 0
        self._next = self._scan()

    def parse(self) -> StructType:
        if self._is_struct():
            self._take()
            parsed = self._struct(1)
        else:
            parsed = self._columns("", 1)
        if self._next.kind != "end":
            raise self._error("the end of the schema")
        return parsed

    def _is_struct(self) -> bool:
        """Return whether the text is a type, and not columns, one perhaps named ``struct``."""
        following = _TOKEN.match(self._text, self._end)
        return (
            self._next.kind == "word"
            and self._next.text.lower() == "struct"
            and following is not None
            and following["mark"] == "<"
        )

    def _columns(self, closing: str, depth: int) -> StructType:
        """Read fields up to a mark, or to the end of the text."""
        if closing and self._next.text == closing:
            raise ValueError(
                "a struct without fields is not supported, since it would have no data: leave the "
                "field out, or read it as 'string'"
            )
        fields = [self._field(depth)]
        while self._accept(","):
            fields.append(self._field(depth))
        if closing:
            self._expect(closing)
        _refuse_duplicates(fields)
        return StructType(tuple(fields))

    def _field(self, depth: int) -> StructField:
        self._fields += 1
        if self._fields > MAX_DDL_FIELDS:
            raise ValueError(f"the schema has more than {MAX_DDL_FIELDS:,} fields")
        name = self._name()
        self._accept(":")
        parsed = self._type(depth)
        self._suffixes()
        return StructField(name, parsed)

    def _suffixes(self) -> None:
        if self._is_word("not"):
            self._take()
            if not self._is_word("null"):
                raise self._error("NULL after NOT")
            self._take()
        if self._is_word("comment"):
            self._take()
            if self._next.kind != "text":
                raise self._error("a comment in quotes")
            self._take()

    def _name(self) -> str:
        token = self._next
        if token.kind == "quoted" and len(token.text) > 2:
            self._take()
            return token.text[1:-1].replace("``", "`")
        if token.kind != "word" or token.text.isdecimal():
            raise self._error("the name of a field")
        self._take()
        return token.text

    def _type(self, depth: int) -> DataType:
        if depth > MAX_DDL_DEPTH:
            raise ValueError(f"the schema is nested more than {MAX_DDL_DEPTH} levels deep")
        if self._next.kind != "word":
            raise self._error("a type")
        name = self._take().text
        match name.lower():
            case "array":
                self._expect("<")
                element = self._type(depth + 1)
                self._expect(">")
                return ArrayType(element)
            case "map":
                return self._map(depth)
            case "struct":
                return self._struct(depth + 1)
            case decimal if decimal in _DECIMAL:
                return self._decimal()
            case "interval":
                self._expect_words("interval day to second")
                return DAY_TIME_INTERVAL
            case known if known in _ATOMIC:
                return self._atomic(known)
            case unsupported if unsupported in _UNSUPPORTED:
                reason = _UNSUPPORTED[unsupported]
                raise ValueError(f"the type '{name}' is not supported: {reason}")
        raise ValueError(f"the type '{excerpt(name)}' is not known")

    def _map(self, depth: int) -> MapType:
        self._expect("<")
        key = self._type(depth + 1)
        if isinstance(key, MapType):
            raise ValueError("the key of a map must not be a map")  # noqa: TRY004
        self._expect(",")
        value = self._type(depth + 1)
        self._expect(">")
        return MapType(key, value)

    def _struct(self, depth: int) -> StructType:
        self._expect("<")
        return self._columns(">", depth)

    def _decimal(self) -> DecimalType:
        if not self._accept("("):
            return DecimalType()
        precision, scale = self._number(), 0
        if self._accept(","):
            scale = self._number()
        self._expect(")")
        return DecimalType(precision, scale)

    def _number(self) -> int:
        token = self._next
        if token.kind != "word" or not re.fullmatch("[0-9]{1,9}", token.text):
            raise self._error("a number of digits")
        return int(self._take().text)

    def _is_word(self, word: str) -> bool:
        return self._next.kind == "word" and self._next.text.lower() == word

    def _atomic(self, name: str) -> DataType:
        if name == "timestamp" and self._is_word("without"):
            self._expect_words("timestamp without time zone")
            return TIMESTAMP_NTZ
        if name == "timestamp" and self._is_word("with"):
            self._expect_words("timestamp with local time zone")
        if name == "string" and self._is_word("collate"):
            self._take()
            self._refuse_collation(self._name())
        return _ATOMIC[name]

    def _refuse_collation(self, name: str) -> None:
        if name.lower() != "utf8_binary":
            raise ValueError(
                f"the collation '{excerpt(name)}' is not supported: use 'string', and collate the "
                "column in the query"
            )

    def _expect_words(self, expected: str) -> None:
        """Take the words after the first, which is taken."""
        for word in expected.split()[1:]:
            if not self._is_word(word):
                raise self._error(f"'{expected}'")
            self._take()

    def _accept(self, mark: str) -> bool:
        is_next = self._next.kind == "mark" and self._next.text == mark
        if is_next:
            self._take()
        return is_next

    def _expect(self, mark: str) -> None:
        if not self._accept(mark):
            raise self._error(f"'{mark}'")

    def _take(self) -> _Token:
        taken, self._next = self._next, self._scan()
        return taken

    def _scan(self) -> _Token:
        found = _TOKEN.match(self._text, self._end)
        if found is None or found.lastgroup is None:
            return _Token("unknown", "", self._end)
        self._end = found.end()
        kind = found.lastgroup
        return _Token(kind, found[kind], found.start(kind))

    def _error(self, expected: str) -> ValueError:
        here = self._text[self._next.start :].strip()
        place = f"at '{excerpt(here)}'" if here else "at its end"
        return ValueError(f"the schema needs {expected} {place}")


def _refuse_duplicates(fields: list[StructField]) -> None:
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            raise ValueError(f"the schema has the field '{excerpt(field.name)}' twice in a struct")
        seen.add(field.name)
