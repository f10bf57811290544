"""The story of a schedule in a few lines."""

from collections.abc import Callable
from typing import Final

from .outcome import Outcome, Told
from .scheduler import EPOCH_MS

MAX_LINES: Final = 20

_MAX_LINE: Final = 150


def tell(
    outcome: Outcome,
    about: str,
    importance_of: Callable[[Told], int],
    text_of: Callable[[object], str] = str,
) -> list[str]:
    """Return what happened, in at most 20 lines: what is important comes first.

    ``about`` is the schedule's sizes. What has no importance at all is left out.
    """
    kinds = sorted({kind.name for kind in outcome.fired.values()})
    first = f"seed {outcome.settings.seed}: {about}, faults: {', '.join(kinds) or 'none'}"
    ranked = sorted(enumerate(outcome.told), key=lambda each: (-importance_of(each[1]), -each[0]))
    told = [each for each in ranked[: MAX_LINES - 2] if importance_of(each[1])]
    lines = [_line(each, text_of) for _, each in sorted(told, key=lambda each: each[0])]
    return [first, *lines, f"    => {outcome.violation or 'nothing is wrong'}"[:400]]


def _line(told: Told, text_of: Callable[[object], str]) -> str:
    at_ms, who, call, subject, result = told
    text = f"{who}: {call} {text_of(subject)}".rstrip()
    if result is not None:
        text += f" -> {text_of(result)}"
    return f"{(at_ms - EPOCH_MS) / 1000:9.2f} s  {text}"[:_MAX_LINE]
