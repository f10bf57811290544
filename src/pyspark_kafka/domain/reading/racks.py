"""The rack of a host: a consumer reads from a replica there, if there is one (KIP-392)."""

from __future__ import annotations

from typing import Final

from ..text import excerpt

_MAX_LENGTH: Final = 255


class RackNotFoundError(Exception):
    """No rack was found: ``asked`` is the place that was searched, ``reason`` why that failed.

    A query continues without it.
    """

    def __init__(self, asked: str, reason: str) -> None:
        super().__init__(excerpt(f"{asked}: {reason}"))


def checked_rack(asked: str, text: str) -> str:
    """Return the name of a rack: 1 to 255 printable characters, without spaces.

    :raises RackNotFoundError: if the text is not a rack's name.
    """
    # The error does not repeat the text, which others write.
    if not text:
        raise RackNotFoundError(asked, "it is empty")
    if len(text) > _MAX_LENGTH or " " in text or not text.isprintable():
        problem = f"it has more than {_MAX_LENGTH} characters, spaces, or some that are unprintable"
        raise RackNotFoundError(asked, problem)
    return text
