"""The data types of typed values, named as Spark names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias, final

MAX_PRECISION: Final = 38
"""The digits of a decimal (``DecimalType.MAX_PRECISION``)."""


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


def quoted_name(name: str) -> str:
    """Return a field's name as DDL has to spell it: in backticks unless it is a plain word."""
    is_plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    return name if is_plain else "`" + name.replace("`", "``") + "`"
