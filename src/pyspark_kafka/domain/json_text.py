"""Reading JSON that people wrote into an option."""

from __future__ import annotations

import json
import re
from typing import Any


def read_json_object(text: str, expected: str) -> dict[str, Any]:
    """Read ``text`` as a JSON object that has no key twice.

    :raises ValueError: if it is anything else; ``expected`` is then quoted as the example.
    """
    pairs = read_json_pairs(text, expected)
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"Expected e.g. {expected}, got {text}")
    return found


def read_json_pairs(text: str, expected: str) -> list[tuple[str, Any]]:
    """Read ``text`` as a JSON object and give its pairs; an object within has no key twice.

    :raises ValueError: if it is anything else; ``expected`` is then quoted as the example.
    """
    try:
        value = json.loads(text, object_pairs_hook=_Pairs)
        if isinstance(value, _Pairs):
            return [(name, _without_duplicates(inner)) for name, inner in value]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Expected e.g. {expected}, got {text}") from error
    # Valid JSON of another shape is still a wrong option, not a wrong type in our code.
    raise ValueError(f"Expected e.g. {expected}, got {text}")


class _Pairs(list[tuple[str, Any]]):
    """The pairs of a JSON object, which a JSON list is not taken for."""


def _without_duplicates(value: Any) -> Any:
    if isinstance(value, _Pairs):
        found = {name: _without_duplicates(inner) for name, inner in value}
        if len(found) != len(value):
            raise ValueError("a key stands twice")
        return found
    if isinstance(value, list):
        return [_without_duplicates(inner) for inner in value]
    return value


def partition_number(text: str) -> int:
    """Read a partition's number from a JSON key.

    :raises ValueError: if it is not written as a plain non-negative decimal number.
    """
    if not re.fullmatch("0|[1-9][0-9]{0,9}", text):
        raise ValueError(f"not a partition's number: {text!r}")
    return int(text)


def is_integer(value: object) -> bool:
    """Tell a JSON integer from a boolean, which Python counts among the integers."""
    return isinstance(value, int) and not isinstance(value, bool)
