"""The names of a channel's files."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ...domain.continuous.messages import TaskId

DRIVER: Final = "driver"
"""Exists as long as the driver has not closed the channel."""

_NUMBERED: Final = re.compile(r"(beat|[0-9a-f]{32}\.message)\.(0|[1-9][0-9]{0,17})")
_MESSAGE: Final = ".message"


def digest_of(task: TaskId) -> str:
    """Return what stands for a task in names: an attempt may be any text."""
    text = f"{task.generation} {task.slot} {task.attempt}"
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def message_name(digest: str, number: int) -> str:
    """Return the name of a task's file of messages."""
    return f"{digest}{_MESSAGE}.{number}"


def command_name(digest: str, number: int) -> str:
    """Return the name of a command to a task."""
    return f"{digest}.command.{number}"


def beat_name(number: int) -> str:
    """Return the name of a heartbeat of the driver."""
    return f"beat.{number}"


def beat_number(name: str) -> int | None:
    """Return the number of a heartbeat, or ``None`` for any other file."""
    found = _NUMBERED.fullmatch(name)
    return int(found[2]) if found and found[1] == "beat" else None


def message_number(name: str) -> tuple[str, int] | None:
    """Return the digest and the number of a file of messages, or ``None`` for any other file."""
    found = _NUMBERED.fullmatch(name)
    if found is None or not found[1].endswith(_MESSAGE):
        return None
    return found[1].removesuffix(_MESSAGE), int(found[2])
