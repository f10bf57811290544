"""Parsers of option values, with the JVM's semantics and messages."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
