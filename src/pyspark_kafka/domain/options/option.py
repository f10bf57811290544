"""The definition of an option, the parsers of values, and the reading of given options.

Parsers have the JVM's semantics and messages; durations are parsed as by Spark's
``JavaUtils.timeStringAsMs``.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, final

PREFIX: Final = "kafka."
REGISTRY_PREFIX: Final = "schema.registry."

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


def boolean(text: str) -> bool:
    """Read ``true`` or ``false`` in any case.

    :raises ValueError: in the words of Scala's ``toBoolean``.
    """
    match text.lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError(f'For input string: "{text}"')


def integer(text: str) -> int:
    """Read a decimal number that fits a JVM ``long``.

    :raises ValueError: in the words of Java's ``NumberFormatException``.
    """
    # No number of 40 digits fits, and Python refuses to read one of more than 4,300.
    if not re.fullmatch("[+-]?[0-9]{1,40}", text) or not INT64_MIN <= int(text) <= INT64_MAX:
        raise ValueError(f'For input string: "{text}"')
    return int(text)


def positive_integer(name: str) -> Callable[[str], int]:
    """Return a parser of numbers from 1 on that fit a JVM ``int``, for the option ``name``."""
    return lambda text: _bounded(text, INT32_MAX, 1, f"{name} must be positive")


def positive_long(name: str) -> Callable[[str], int]:
    """Return a parser of numbers from 1 on that fit a JVM ``long``, for the option ``name``."""
    return lambda text: _bounded(text, INT64_MAX, 1, f"{name} must be positive")


def non_negative_integer(name: str) -> Callable[[str], int]:
    """Return a parser of numbers from 0 on that fit a JVM ``int``, for the option ``name``."""
    return lambda text: _bounded(text, INT32_MAX, 0, f"{name} must not be negative")


def time_to_live(name: str) -> Callable[[str], int]:
    """Return a parser of -1 and of positive milliseconds, for the option ``name`` (SPARK-49442)."""

    def parse(text: str) -> int:
        value = integer(text)
        if value != -1 and value <= 0:
            raise ValueError(f"{name} must be -1 or positive, got {text}")
        return value

    return parse


def required(problem: str) -> Callable[[str], str]:
    """Return a parser of texts without the space around them, which refuses an empty one."""

    def parse(text: str) -> str:
        trimmed = text.strip()
        if not trimmed:
            raise ValueError(problem)
        return trimmed

    return parse


def json_object(name: str) -> Callable[[str], str]:
    """Return a parser of JSON objects, kept as text, for the option ``name``.

    Its messages do not repeat the text, which may contain a secret.
    """

    def parse(text: str) -> str:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            # Not chained: json's message shows a part of the text.
            raise ValueError(f"{name} must be a JSON object") from None  # noqa: TRY004
        return json.dumps(value, sort_keys=True)

    return parse


def server_list(text: str) -> list[str]:
    """Return the servers in ``bootstrap.servers``; Kafka's clients ignore empty parts as well."""
    return [server for server in map(str.strip, text.split(",")) if server]


def did_you_mean(name: str, known: Mapping[str, str]) -> str:
    """Return a question for the known name that is near, shown as its value, or no text."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return f" Did you mean '{known[close[0]]}'?" if close else ""


def clamp(minimum: int, number: int, maximum: int) -> int:
    """Return the number, or the bound that it exceeds."""
    return max(minimum, min(maximum, number))


def _bounded(text: str, maximum: int, minimum: int, problem: str) -> int:
    value = integer(text)
    if not -maximum - 1 <= value <= maximum:
        raise ValueError(f'For input string: "{text}"')
    if value < minimum:
        raise ValueError(problem)
    return value


_MICROSECONDS: Final[Mapping[str, int]] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_JAVA_SPACE: Final = "".join(map(chr, range(ord(" ") + 1)))
_HELP: Final = (
    "Time must be specified as seconds (s), milliseconds (ms), microseconds (us), "
    "minutes (m or min), hour (h), or day (d). E.g. 50s, 100ms, or 250us."
)


def milliseconds(text: str) -> int:
    """Return the milliseconds of ``15m``, ``5s``, ``100ms`` or a plain number of milliseconds.

    Case and surrounding blanks are ignored, a blank inside is an error. Fractions of a millisecond
    are truncated, and values beyond a JVM ``long`` are clamped.

    :raises ValueError: with the message of ``JavaUtils``, if it is not a duration.
    """
    try:
        microseconds = _microseconds(text)
    except ValueError as error:
        raise ValueError(f"{_HELP}\n{error}") from error
    truncated = abs(microseconds) // 1_000
    return max(INT64_MIN, min(INT64_MAX, truncated if microseconds >= 0 else -truncated))


def _microseconds(text: str) -> int:
    found = re.fullmatch("(-?[0-9]+)([a-z]+)?", text.lower().strip(_JAVA_SPACE))
    if found is None:
        raise ValueError(f"Failed to parse time string: {text}")
    number = integer(found[1])
    suffix = found[2] or "ms"
    if suffix not in _MICROSECONDS:
        raise ValueError(f'Invalid suffix: "{suffix}"')
    return number * _MICROSECONDS[suffix]


T = TypeVar("T")


class QueryKind(enum.Enum):
    """The two kinds of query, whether it reads or writes."""

    BATCH = "batch"
    STREAM = "stream"


BOTH: Final = frozenset(QueryKind)
BATCH_ONLY: Final = frozenset({QueryKind.BATCH})
STREAM_ONLY: Final = frozenset({QueryKind.STREAM})


@final
@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One option: its spelling, its parser, and its text on the reference page.

    ``field`` is the field of ``SourceOptions`` or ``SinkOptions`` that holds the value. An option
    without a field is combined with others.
    """

    name: str
    parse: Callable[[str], T]
    default: T
    values: str
    doc: str
    default_text: str = ""
    queries: frozenset[QueryKind] = BOTH
    field: str = ""

    @property
    def key(self) -> str:
        """The name in lower case, as Spark passes options to a source."""
        return self.name.lower()


def lower(raw: Mapping[str, str]) -> dict[str, str]:
    """Return the options by their names in lower case."""
    return {name.lower(): value for name, value in raw.items()}


def ignored(
    raw: Mapping[str, str],
    query: QueryKind,
    own: Sequence[Option[Any]],
    others: Sequence[Option[Any]],
) -> list[str]:
    """Return the names of given options that only another kind of query or the other side has."""
    given = lower(raw)
    keys = {option.key for option in own}
    unused = [option for option in own if query not in option.queries]
    unused += [option for option in others if option.key not in keys]
    return [option.name for option in unused if option.key in given]


@dataclass(slots=True)
class Reading:
    """The given options by their names in lower case, what was read of them, and the problems."""

    given: Mapping[str, str]
    problems: list[str] = field(default_factory=list)
    _values: dict[str, Any] = field(default_factory=dict)

    def read(self, option: Option[T]) -> T:
        """Return an option's value, or its default if it is not given or cannot be parsed."""
        if option.key not in self._values:
            self._values[option.key] = self._parse(option)
        value: T = self._values[option.key]
        return value

    def _parse(self, option: Option[T]) -> T:
        text = self.given.get(option.key)
        if text is None:
            return option.default
        try:
            return option.parse(text)
        except ValueError as error:
            self.add_problem(option, error)
            return option.default

    def add_problem(self, option: Option[Any], error: ValueError) -> None:
        """Add what is wrong with an option, with its name: Java's errors have none."""
        text = str(error)
        named = option.key in text.lower()
        self.problems.append(text if named else f"Option '{option.name}': {text}")

    def read_fields(self, table: Iterable[Option[Any]]) -> dict[str, Any]:
        """Return the values of all options that fill a field, by the fields' names."""
        return {option.field: self.read(option) for option in table if option.field}

    def refuse_unknown(self, own: Sequence[Option[Any]], accepted: Iterable[str]) -> None:
        """Add a problem for each name that is not in ``own`` or ``accepted``.

        The settings of Kafka and of schema registries have their own checks.
        """
        known = {option.key: option.name for option in own}
        for name in sorted(self.given.keys() - known.keys() - set(accepted)):
            if not name.startswith((PREFIX, REGISTRY_PREFIX)):
                self.problems.append(f"Option '{name}' is not known.{did_you_mean(name, known)}")
