"""The story of a schedule."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, cast

from pyspark_kafka.domain.checkpoints.checkpoint_log import read_batch_end
from pyspark_kafka.domain.checkpoints.entries import SinkLogEntry
from pyspark_kafka.domain.writing.transaction import Transaction

from ..engine.outcome import Outcome, Told
from ..engine.story import tell
from .faults import Fault, SinkSettings

_READS: Final = frozenset(
    {"describe", "find", "get", "latest", "purge", "batch_ids"}
    | {"committed", "partitions", "hear", "offset"}
)
_FAULTS: Final = frozenset(kind.value for kind in Fault)


def story_of(outcome: Outcome) -> list[str]:
    """Return what happened: answers to questions are left out."""
    settings = cast("SinkSettings", outcome.settings)
    where = "in the checkpoint" if settings.is_log_in_checkpoint else "at 'metadataPath'"
    about = (
        f"{settings.partitions} partitions, {settings.records} records, log {where}, time-out "
        f"{settings.timeout_ms // 1000} s"
    )
    return tell(outcome, about, _importance, _text)


def _importance(told: Told) -> int:
    """Return a number up to 4: answers to questions have the least one."""
    _, who, call, _, result = told
    if who.startswith(("people", "an operator")) or (isinstance(result, str) and result in _FAULTS):
        return 4
    if call in _READS:
        return 0
    if call in {"write", "plans"}:
        return 1
    return 2 if call in {"begin", "end"} else 3


def _text(value: object) -> str:
    if isinstance(value, Transaction):
        return f"{_short(value.transactional_id)} epoch {value.epoch}"
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], bytes):
        return f"{value[0]}: {_content(value[1])}"
    if isinstance(value, str) and value.startswith("sink-"):
        return _short(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(
            each.decode() if isinstance(each, bytes) else _text(each) for each in value
        )
    return str(value)


def _content(content: bytes) -> str:
    """Return what a file of the sink's log or of the checkpoint says."""
    if b"batchId" in content and content.startswith(b"v"):
        entry = SinkLogEntry.from_bytes(content)
        names = ", ".join(_text(each) for each in entry.transactions)
        return f"batch {entry.batch_id} {entry.state.value} [{names}]"
    with suppress(ValueError):
        return f"a batch up to {read_batch_end(content).to_json()}"
    return f"{len(content)} bytes"


def _short(name: str) -> str:
    """Return a transactional id without the prefix and the query's id."""
    return name[-len(name.split("-", 6)[-1]) :] if name.count("-") > 6 else name
