"""Keys and values of records as a person reads them."""

from __future__ import annotations

import enum
import json
from typing import Any


class Rendering(enum.Enum):
    """How bytes are shown."""

    TEXT = "text"
    JSON = "json"
    HEX = "hex"


def render(data: bytes | None, rendering: Rendering) -> tuple[Any, str]:
    """Return bytes as a value for JSON, and what is wrong with them.

    Bytes that are not UTF-8 are escaped, and what is no JSON is shown as text.
    """
    if data is None:
        return None, ""
    if rendering is Rendering.HEX:
        return data.hex(), ""
    text = data.decode(errors="backslashreplace")
    if rendering is Rendering.TEXT:
        return text, ""
    try:
        return json.loads(text), ""
    except (ValueError, RecursionError):
        return text, "not JSON"


def printable(text: str) -> str:
    """Return a text on one line, without what a terminal obeys."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
