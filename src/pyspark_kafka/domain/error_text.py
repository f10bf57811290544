"""Errors as text: on one line, and found again in the text of others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

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
    """An error of this library in a text: the name of its class, and what it says."""

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
    """Return a text for a message: a file may hold megabytes, and what a terminal obeys."""
    shown = text if len(text) <= _MAX_EXCERPT else f"{text[:_MAX_EXCERPT]}..."
    escaped = (each if each.isprintable() else _escape(each) for each in shown)
    return "".join(escaped)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def one_line(text: str) -> str:
    """Return a text without line breaks and repeated spaces."""
    return " ".join(text.split())
