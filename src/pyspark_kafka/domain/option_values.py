"""Reading the values of options as the JVM reads them, with its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def boolean(text: str) -> bool:
    """Read ``true`` or ``false`` in any case.

    :raises ValueError: in the words of Scala's ``toBoolean``.
    """
    match text.strip().lower():
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
    digits = text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit()) or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f'For input string: "{text}"')
    return int(text)


def positive_integer(name: str) -> Callable[[str], int]:
    """Make a parser of numbers from 1 on, for the option ``name``."""

    def parse(text: str) -> int:
        value = integer(text)
        if value <= 0:
            raise ValueError(f"{name} must be positive")
        return value

    return parse


def non_negative_integer(name: str) -> Callable[[str], int]:
    """Make a parser of numbers from 0 on, for the option ``name``."""

    def parse(text: str) -> int:
        value = integer(text)
        if value < 0:
            raise ValueError(f"{name} must not be negative")
        return value

    return parse
