"""Reading the values of options as the JVM reads them, with its messages."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """Make a parser of numbers from 1 on that fit a JVM ``int``, for the option ``name``."""
    return lambda text: _bounded(text, INT32_MAX, 1, f"{name} must be positive")


def positive_long(name: str) -> Callable[[str], int]:
    """Make a parser of numbers from 1 on that fit a JVM ``long``, for the option ``name``."""
    return lambda text: _bounded(text, INT64_MAX, 1, f"{name} must be positive")


def non_negative_integer(name: str) -> Callable[[str], int]:
    """Make a parser of numbers from 0 on that fit a JVM ``int``, for the option ``name``."""
    return lambda text: _bounded(text, INT32_MAX, 0, f"{name} must not be negative")


def time_to_live(name: str) -> Callable[[str], int]:
    """Make a parser of -1 and of positive milliseconds, for the option ``name`` (SPARK-49442)."""

    def parse(text: str) -> int:
        value = integer(text)
        if value != -1 and value <= 0:
            raise ValueError(f"{name} must be -1 or positive, got {text}")
        return value

    return parse


def group_id(name: str) -> Callable[[str], str]:
    """Make a parser of a consumer group's name, for the option ``name``."""

    def parse(text: str) -> str:
        trimmed = text.strip()
        if not trimmed:
            raise ValueError(f"{name} must name a consumer group")
        return trimmed

    return parse


def json_object(name: str) -> Callable[[str], str]:
    """Make a parser of JSON objects, kept as text, for the option ``name``.

    Its messages do not repeat the text, which may hold a secret.
    """

    def parse(text: str) -> str:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            # Not chained: what json says of a text shows a part of it.
            raise ValueError(f"{name} must be a JSON object") from None  # noqa: TRY004
        return json.dumps(value, sort_keys=True)

    return parse


def is_positive_integer(text: str) -> bool:
    """Tell whether a text is a number from 1 on that fits a JVM ``int``."""
    try:
        return positive_integer("")(text) > 0
    except ValueError:
        return False


def _bounded(text: str, most: int, least: int, problem: str) -> int:
    value = integer(text)
    if not -most - 1 <= value <= most:
        raise ValueError(f'For input string: "{text}"')
    if value < least:
        raise ValueError(problem)
    return value
