"""Findings, and the exit status of the worst."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Iterable


class Level(enum.Enum):
    """How bad a finding is; the members are in this order."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"

    @property
    def exit_status(self) -> int:
        """The exit status of a command whose worst finding has this level.

        2 is left to wrong arguments.
        """
        return {Level.OK: 0, Level.WARNING: 3, Level.ERROR: 1}[self]


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """What a check has found, and what to do next; ``advice`` is empty if that is nothing."""

    check: str
    level: Level
    summary: str
    advice: str = ""


def ok(check: str, summary: str) -> Finding:
    """Return a finding without anything to do."""
    return Finding(check, Level.OK, summary)


def warning(check: str, summary: str, advice: str) -> Finding:
    """Return a finding that does not stop a query."""
    return Finding(check, Level.WARNING, summary, advice)


def error(check: str, summary: str, advice: str) -> Finding:
    """Return a finding that stops a query."""
    return Finding(check, Level.ERROR, summary, advice)


def worst(findings: Iterable[Finding]) -> Level:
    """Return the worst level; ``OK`` without findings."""
    order = list(Level)
    return max((each.level for each in findings), key=order.index, default=Level.OK)
