"""The story of a schedule."""

from collections.abc import Mapping
from typing import Final, cast

from pyarrow import RecordBatch

from pyspark_kafka.domain.partition_offsets import PartitionOffsets

from ..engine.outcome import Outcome, Told
from ..engine.story import tell
from .faults import Fault, SourceSettings

_ALWAYS: Final = ("kafka.bootstrap", "client", "include", "allowLimits")
"""Beginnings of options that every query has."""

_FAULTS: Final = frozenset(kind.value for kind in Fault)


def story_of(outcome: Outcome) -> list[str]:
    """Return what happened: what the source reads and asks for comes last."""
    settings = cast("SourceSettings", outcome.settings)
    given = cast("Mapping[str, str]", outcome.told[0][4])
    shown = {name: text for name, text in given.items() if not name.startswith(_ALWAYS)}
    query = ", ".join(f"{name}={text}" for name, text in shown.items())
    kind = "batch" if settings.is_batch else f"stream of {settings.version.value}"
    trigger = "" if settings.is_batch else f", trigger {settings.trigger.value}"
    return tell(outcome, f"{kind}{trigger}, {query}", _importance, _text)


def _importance(told: Told) -> int:
    """Return a number up to 4: what people and faults do has the greatest one."""
    _, who, call, _, result = told
    if call == "options":
        return 0
    if who in ("people", "topics", "") or (isinstance(result, str) and result in _FAULTS):
        return 4
    if call in ("fails", "dies", "stands still", "report a loss", "rows"):
        return 4
    return {"log offsets": 3, "log commit": 3, "latest": 2, "earliest": 2, "for_timestamps": 2}.get(
        call, 1
    )


def _text(value: object) -> str:
    if isinstance(value, PartitionOffsets):
        return value.to_json()
    if isinstance(value, RecordBatch):
        return f"{value.num_rows} rows"
    if isinstance(value, frozenset):
        return ", ".join(sorted(map(str, value)))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {each}" for name, each in sorted(value.items()))
    return str(value)
