"""The story of a schedule."""

from collections.abc import Sequence
from typing import cast

from ..engine.outcome import Outcome, Told
from ..engine.story import tell
from .faults import DeliverySettings


def story_of(outcome: Outcome) -> list[str]:
    settings = cast("DeliverySettings", outcome.settings)
    mode = "continuously" if settings.is_continuous else "in micro-batches"
    about = f"{settings.writes} writes {mode}, {settings.partitions} partitions"
    return tell(outcome, about, _importance, _text)


def _importance(told: Told) -> int:
    return 2 if told[1] == "people" else 1


def _text(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(each.decode() if isinstance(each, bytes) else str(each) for each in value)
    return str(value)
