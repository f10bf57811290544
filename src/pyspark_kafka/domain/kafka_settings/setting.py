"""What one setting of Kafka's Java clients is, and what becomes of it in this library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from ..option_values import INT32_MAX, boolean, clamp, integer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

PREFIX: Final = "kafka."


@final
@dataclass(frozen=True, slots=True)
class Values(Generic[T]):
    """The values that Java's clients accept for a setting; ``text`` says which these are."""

    text: str
    parse: Callable[[str], T]

    def read(self, name: str, value: str) -> T:
        """Return the parsed value of the setting ``name``.

        :raises ValueError: if it is none of these values.
        """
        try:
            return self.parse(value)
        except (KeyError, ValueError):
            raise ValueError(
                f"Option '{PREFIX}{name}' must be {self.text}, got '{value}'"
            ) from None


def at_least(minimum: int) -> Values[int]:
    """Return the integers from ``minimum`` on; those above an ``int`` are read as its maximum."""

    def parse(text: str) -> int:
        if integer(text) < minimum:
            raise ValueError(text)
        return min(integer(text), INT32_MAX)

    return Values(f"a whole number from {minimum} on", parse)


def between(minimum: int, maximum: int = INT32_MAX) -> Values[int]:
    """Return the integers within these bounds."""

    def parse(text: str) -> int:
        if not minimum <= integer(text) <= maximum:
            raise ValueError(text)
        return integer(text)

    return Values(f"a whole number from {minimum} to {maximum}", parse)


def one_of(*words: str) -> Values[str]:
    """Return these words, in upper or lower case."""
    by_key = {word.lower(): word for word in words}
    return Values(f"one of {', '.join(words)}", lambda text: by_key[text.lower()])


def exactly(text: str, values: Mapping[str, T]) -> Values[T]:
    """Return the keys of a mapping, which are parsed as its values."""
    return Values(text, lambda value: values[value])


BOOLEAN: Final = Values("true or false", boolean)


@final
@dataclass(frozen=True, slots=True)
class Ignored:
    """The setting is accepted without effect."""

    reason: str


@final
@dataclass(frozen=True, slots=True)
class Refused:
    """The setting is refused with any value; ``message`` is the whole error message."""

    message: str


@final
@dataclass(frozen=True, slots=True)
class NeedsJvm:
    """The setting is refused, unless its value is empty or ``default``, Java's own."""

    instead: str
    default: str = ""


@final
@dataclass(frozen=True, slots=True)
class ProducerField:
    """The setting fills this field of ``ProducerSettings``.

    Without a name it is the level of a codec. ``java_default`` is set if Java has another default.
    """

    values: Values[Any]
    name: str = ""
    java_default: str = ""


@final
@dataclass(frozen=True, slots=True)
class Number:
    """A client's number: its bounds, its name if not Java's, and its equivalent of Java's -1."""

    minimum: int = 0
    maximum: int = INT32_MAX
    name: str = ""
    unlimited: int | None = None

    def nearest(self, number: int) -> int:
        """Return the nearest number that the client accepts."""
        if number < 0 and self.unlimited is not None:
            return self.unlimited
        return clamp(self.minimum, number, self.maximum)


@final
@dataclass(frozen=True, slots=True)
class Text:
    """A client's text, under Java's name."""


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of Kafka's Java clients.

    ``values`` are those that a consumer or any client accepts; a setting without them is a text.
    ``kafka_python`` and ``librdkafka`` say how the setting is passed to the client, if not
    unchanged under Java's name. ``read`` and ``write`` say what a read and a write do with it
    instead, and ``jvm`` that only a JVM can have it.
    """

    name: str
    values: Values[Any] | None = None
    kafka_python: Number | Text | Ignored | None = None
    librdkafka: Number | Ignored | None = None
    read: Ignored | Refused | None = None
    write: ProducerField | Ignored | Refused | None = None
    jvm: NeedsJvm | None = None
    is_security: bool = False
