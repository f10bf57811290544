"""The story of a schedule."""

from typing import Final, cast

from ..engine.outcome import Outcome, Told
from ..engine.story import tell
from .faults import Fault, ReadingSettings

_FAULTS: Final = frozenset(kind.value for kind in Fault)


def story_of(outcome: Outcome) -> list[str]:
    """Return what happened: what brokers answer is left out first."""
    settings = cast("ReadingSettings", outcome.settings)
    what = "a stream" if settings.is_stream else "ranges"
    isolation = "committed" if settings.is_committed else "uncommitted"
    about = (
        f"{what}, {isolation}, {settings.brokers} brokers {settings.release.value}, "
        f"{settings.topics} x {settings.partitions} partitions, rack '{settings.rack}'"
    )
    return tell(outcome, about, _importance)


def _importance(told: Told) -> int:
    _, who, call, _, result = told
    if who == "cluster" or call in {"fails", "dies", "reports"}:
        return 5
    if isinstance(result, str) and result in _FAULTS:
        return 4
    if who == "task":
        return 3
    return {"fetch": 2, "metadata": 1}.get(call, 0)
