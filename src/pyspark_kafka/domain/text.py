"""Texts for people: errors on one line, records as they are shown, tables for notebooks."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from .errors import PysparkKafkaError

_QUOTED: Final = re.compile(
    r"^\S*pyspark_kafka\.\S*?(?P<kind>\w+): (?P<text>\[[A-Z_.]+\] .+?)"
    r"(?=\n\s*\n|\n\s*SQLSTATE|\s+SQLSTATE:|\n\s+at |\n=== |\Z)",
    re.DOTALL | re.MULTILINE,
)
"""An error of this library as Python prints it, up to what Spark puts behind it."""

_MAX_EXCERPT: Final = 300


@final
@dataclass(frozen=True, slots=True)
class QuotedError:
    """An error of this library in a text: the name of its class, and its message."""

    kind: str
    text: str


def find_error(text: str) -> QuotedError | None:
    """Return the first error of this library that a traceback in ``text`` names, if any."""
    found = _QUOTED.search(text)
    return None if found is None else QuotedError(found["kind"], found["text"].strip())


def describe_error(error: BaseException) -> str:
    """Return an error on one line; with the name of its class unless it is this library's."""
    text = one_line(str(error))
    if isinstance(error, PysparkKafkaError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def excerpt(text: str) -> str:
    """Return a text for a message: a file may hold megabytes, and commands for a terminal."""
    shown = text if len(text) <= _MAX_EXCERPT else f"{text[:_MAX_EXCERPT]}..."
    return printable(shown)


def one_line(text: str) -> str:
    """Return a text without line breaks and repeated spaces."""
    return " ".join(text.split())


class Rendering(enum.Enum):
    """How bytes are shown."""

    TEXT = "text"
    JSON = "json"
    HEX = "hex"


def render(data: bytes | None, rendering: Rendering) -> tuple[Any, str]:
    """Return bytes as a value for JSON, and what is wrong with them.

    Bytes that are not UTF-8 are escaped, and what is not JSON is shown as text.
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
    """Return a text on one line, without commands for a terminal."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def html_table(
    caption: str, rows: Iterable[Sequence[str | int]], headings: Sequence[str] = ()
) -> str:
    """Return a table; all texts are escaped, and numbers have thousands separators."""
    # Most processes draw no table.
    from html import escape

    head = f"<thead>{_row(headings, 'th')}</thead>" if headings else ""
    body = "".join(_row(cells, "td") for cells in rows)
    return f"<table><caption>{escape(caption)}</caption>{head}<tbody>{body}</tbody></table>"


def _row(cells: Sequence[str | int], tag: str) -> str:
    from html import escape

    texts = (f"{cell:,}" if isinstance(cell, int) else escape(cell) for cell in cells)
    return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in texts)}</tr>"
