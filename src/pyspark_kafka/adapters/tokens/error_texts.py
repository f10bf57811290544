"""What issuers say, as a part of an error message."""

from __future__ import annotations

from typing import Final

_MAX_TEXT: Final = 300


def readable(text: str, max_text: int = _MAX_TEXT) -> str:
    """Return what another server said, in one line of limited length."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= max_text else f"{line[:max_text]}…"


def one_line(error: Exception) -> str:
    """Return an error of a library, with its class."""
    return readable(f"{type(error).__name__}: {error}")
