"""The JSON of options and of files that are read back, and the timestamps in JSON."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, Final, TypeGuard


def utc_text(moment: datetime, timespec: str = "milliseconds") -> str:
    """Return a moment in UTC as ISO 8601 and Spark's progress have it, such as ``…:00.000Z``."""
    return moment.isoformat(timespec=timespec).replace("+00:00", "Z")


def read_json_object(text: str, expected: str) -> dict[str, Any]:
    """Parse ``text`` as a JSON object without duplicate keys.

    :raises ValueError: if it is anything else; the message quotes ``expected`` as the example.
    """
    pairs = read_json_pairs(text, expected)
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"Expected e.g. {expected}, got {text}")
    return found


def read_json_pairs(text: str, expected: str) -> list[tuple[str, Any]]:
    """Parse ``text`` as a JSON object; return its pairs, objects inside without duplicate keys.

    :raises ValueError: if it is anything else; the message quotes ``expected`` as the example.
    """
    try:
        value = json.loads(text, object_pairs_hook=_Pairs)
        if isinstance(value, _Pairs):
            return [(name, _without_duplicates(inner)) for name, inner in value]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Expected e.g. {expected}, got {text}") from error
    # A ValueError, not a TypeError: JSON of another shape is an invalid option.
    raise ValueError(f"Expected e.g. {expected}, got {text}")


def read_json(text: str | bytes) -> Any:
    """Parse JSON without duplicate keys, ``NaN`` and ``Infinity``, which JSON does not have.

    :raises ValueError: if it is anything else, or nested too deeply for Python's parser.
    """
    try:
        return _without_duplicates(
            json.loads(text, object_pairs_hook=_Pairs, parse_constant=_refuse_constant)
        )
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


# Unterminated texts and comments match too: it must not take long to find none.
_COMMENT: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"?|(?P<comment>//[^\r\n]*|/\*.*?(?:\*/|\Z))', re.DOTALL
)


def read_commented_json(text: str) -> Any:
    """Parse JSON that may have comments; of duplicate keys the last one counts.

    :raises ValueError: if it is anything else, or nested too deeply for Python's parser.
    """
    plain = _COMMENT.sub(lambda found: " " if found["comment"] else found[0], text)
    try:
        return json.loads(plain, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class _Pairs(list[tuple[str, Any]]):
    """The pairs of a JSON object, which differ in type from a JSON array."""


def _without_duplicates(value: Any) -> Any:
    if isinstance(value, _Pairs):
        found = {name: _without_duplicates(inner) for name, inner in value}
        if len(found) != len(value):
            raise ValueError("duplicate key")
        return found
    if isinstance(value, list):
        return [_without_duplicates(inner) for inner in value]
    return value


def partition_number(text: str) -> int:
    """Parse a partition number from a JSON key.

    :raises ValueError: if it is not a plain non-negative decimal number.
    """
    if not re.fullmatch("0|[1-9][0-9]{0,9}", text):
        raise ValueError(f"not a partition number: {text!r}")
    return int(text)


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether it is a JSON integer: in Python, ``bool`` is an ``int`` too."""
    return isinstance(value, int) and not isinstance(value, bool)
