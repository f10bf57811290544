"""A schedule, told in a few lines."""

from collections.abc import Sequence
from typing import Final

from pyspark_kafka.domain.checkpoints.entries import SinkLogEntry
from pyspark_kafka.domain.writing.transaction import Transaction

from .faults import Fault
from .scheduler import EPOCH_MS
from .simulation import Outcome
from .world import Told

MAX_LINES: Final = 20

_READS: Final = frozenset({"describe", "find", "get", "latest", "purge"})
_FAULTS: Final = frozenset(kind.value for kind in Fault)


def story_of(outcome: Outcome) -> list[str]:
    """Return what happened, in at most 20 lines: what is important comes first."""
    settings = outcome.settings
    kinds = sorted({kind.name for kind in outcome.fired.values()})
    where = "in the checkpoint" if settings.is_log_in_checkpoint else "at 'metadataPath'"
    first = (
        f"seed {settings.seed}: {settings.partitions} partitions, {settings.records} records, log "
        f"{where}, time-out {settings.timeout_ms // 1000} s, faults: {', '.join(kinds) or 'none'}"
    )
    ranked = sorted(enumerate(outcome.told), key=lambda each: (-_importance(each[1]), -each[0]))
    told = [each for each in ranked[: MAX_LINES - 2] if _importance(each[1])]
    lines = [_line(each) for _, each in sorted(told, key=lambda each: each[0])]
    return [first, *lines, f"    => {outcome.violation or 'nothing is wrong'}"[:400]]


def _importance(told: Told) -> int:
    """Return a number up to 4: answers to questions have the least one."""
    _, who, call, _, result = told
    if who.startswith(("people", "an operator")) or (isinstance(result, str) and result in _FAULTS):
        return 4
    if call in _READS:
        return 0
    if call in {"write", "plans"}:
        return 1
    return 2 if call == "begin" else 3


def _line(told: Told) -> str:
    at_ms, who, call, subject, result = told
    text = f"{who}: {call} {_text(subject)}".rstrip()
    if result is not None:
        text += f" -> {_text(result)}"
    return f"{(at_ms - EPOCH_MS) / 1000:9.2f} s  {text}"[:150]


def _text(value: object) -> str:
    if isinstance(value, Transaction):
        return f"{_short(value.transactional_id)} epoch {value.epoch}"
    if isinstance(value, tuple) and isinstance(value[1], bytes) and value[1].startswith(b"v"):
        entry = SinkLogEntry.from_bytes(value[1])
        names = ", ".join(_text(each) for each in entry.transactions)
        return f"{value[0]}: batch {entry.batch_id} {entry.state.value} [{names}]"
    if isinstance(value, str) and value.startswith("sink-"):
        return _short(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(
            each.decode() if isinstance(each, bytes) else _text(each) for each in value
        )
    return str(value)


def _short(name: str) -> str:
    """Return a transactional id without the prefix and the query's id."""
    return name[-len(name.split("-", 6)[-1]) :] if name.count("-") > 6 else name
