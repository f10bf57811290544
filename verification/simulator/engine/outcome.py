"""The outcome of a schedule."""

import enum
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from .settings import Settings

Told: TypeAlias = tuple[int, str, str, object, object]
"""When, who, what, to what, and the outcome."""


class ViolationError(Exception):
    """A promise was broken; ``kind`` is the same for the same promise."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


def violation_of(run: Callable[[], None]) -> ViolationError | None:
    """Run a schedule, and return the promise that was broken, if one was.

    Any other error is the product's, or the simulator's.
    """
    try:
        run()
    except ViolationError as error:
        return error
    except Exception as error:  # noqa: BLE001
        crash = ViolationError("crash", repr(error))
        crash.__cause__ = error
        return crash
    return None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a schedule; ``fired`` has the faults that happened, by their keys."""

    settings: Settings
    violation: ViolationError | None
    fired: Mapping[str, enum.Enum]
    told: list[Told]
    known: Counter[str] = field(default_factory=Counter)
    """Known limits that the schedule came to, counted."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    """Sizes that must stay bounded, by name."""
