"""Faults that are planted in the product, and that the simulator has to find."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from pyspark import TaskContext

from pyspark_kafka.adapters.spark import sink_writers
from pyspark_kafka.application.writing import kafka_sink, sink_task
from pyspark_kafka.application.writing.kafka_sink import KafkaSink
from pyspark_kafka.application.writing.sink_checkpoint import SinkCheckpoint
from pyspark_kafka.application.writing.sink_task import SinkTask
from pyspark_kafka.domain.checkpoints.entries import BatchState, SinkLogEntry
from pyspark_kafka.domain.writing import transaction
from pyspark_kafka.domain.writing.transaction import SinkTaskId, TransactionEnd

from ..engine.simulator import Change
from . import planted_modes, ports

_SINK: Final[Any] = KafkaSink
_TASK: Final[Any] = SinkTask
_REAL: Final[Mapping[str, Any]] = {
    "end_of": transaction.end_of,
    "task_id": sink_writers._task_id,
    "from_bytes": SinkLogEntry.from_bytes,
    "append": _SINK._append,
    "complete": _SINK._complete,
    "commit": _SINK.commit,
}


def _nothing(*_: object) -> None:
    """Do nothing."""


def _abort_whatever_is_logged(self: Any, _: int, written: Any, __: str | None = None) -> None:
    self._abort_all(each.transaction for each in written if each and each.transaction)


def _task_id_by_attempt_number() -> SinkTaskId:
    context = TaskContext.get()
    assert context is not None
    task: SinkTaskId = _REAL["task_id"]()
    return replace(task, attempt=context.attemptNumber())


def _begin_without_slots(self: Any, name: str, _: int) -> object:
    return self._transactions().begin(f"{name}-0")


def _complete_all_but_the_last(
    self: Any, number: int, prepared: SinkLogEntry, ends: Any = None
) -> Any:
    first, last = prepared.transactions[:-1], prepared.transactions[-1:]
    known = ends and {each: ends[each] for each in first}
    done = _REAL["complete"](self, number, replace(prepared, transactions=first), known)
    for each in last:
        self._transactions().commit(each)
    return done


def _append_unless_prepared(self: Any, number: int, entry: SinkLogEntry) -> None:
    if entry.state is not BatchState.PREPARED:
        _REAL["append"](self, number - 1, entry)


def _begin_all(self: Any, abandoned: Mapping[str, object], _: object) -> None:
    for name in abandoned:
        self._transactions().begin(name)


def _commit_and_clean_up(
    self: Any, batch_id: int, query_id: str | None, written: Any, plan: Any
) -> None:
    opened = [each.transaction for each in written if each.transaction]
    abandoned = self._abandoned(opened, query_id)
    _REAL["commit"](self, batch_id, query_id, written, plan)
    self._abort_abandoned(abandoned, opened)


def _taken_for(end: TransactionEnd, other: TransactionEnd) -> Callable[..., Any]:
    def end_of(*arguments: Any) -> Any:
        found = _REAL["end_of"](*arguments)
        return other if found is end else found

    return end_of


PLANTED: Final[Mapping[str, tuple[Change, ...]]] = {
    "W1: abort does not look at the log": (Change(_SINK, "abort", _abort_whatever_is_logged),),
    "W2: no transaction is checked before PREPARED": (Change(_SINK, "_require_open", _nothing),),
    "W5: attempt numbers in ids, without slots": (
        Change(sink_writers, "_task_id", _task_id_by_attempt_number),
        Change(_TASK, "_begin", _begin_without_slots),
    ),
    "W6: no query id in the log": (
        Change(
            SinkLogEntry,
            "from_bytes",
            lambda content: replace(_REAL["from_bytes"](content), query_id=None),
        ),
    ),
    "W7: no digest of offsets": (Change(SinkCheckpoint, "require_written", _nothing),),
    "COMMITTED before the last EndTxn": (Change(_SINK, "_complete", _complete_all_but_the_last),),
    "PREPARED is not logged": (Change(_SINK, "_append", _append_unless_prepared),),
    "abort does not take the entry's number": (Change(_SINK, "_block", lambda *_: True),),
    "every id is free": (Change(sink_task, "is_free", lambda *_: True),),
    "all runs have the same ids": (
        Change(transaction, "short_digest", lambda _: "00000000"),
        Change(_SINK, "_abort_abandoned", _begin_all),
    ),
    "a batch that another driver has decided is cleaned up": (
        Change(_SINK, "commit", _commit_and_clean_up),
    ),
    "a copy has the original's ids": (Change(ports, "short_digest", lambda _: "00000000"),),
    "older backups are not noticed": (
        Change(_SINK, "_used_until_ms", lambda _, __, entry, *___: entry.started_ms),
    ),
    "abandoned transactions stay open": (Change(_SINK, "_abort_abandoned", _nothing),),
    "REPLACED is taken for lost": (
        Change(kafka_sink, "end_of", _taken_for(TransactionEnd.REPLACED, TransactionEnd.ABORTED)),
    ),
    "a time-out is taken for a commit": (
        Change(
            kafka_sink, "end_of", _taken_for(TransactionEnd.TIMED_OUT, TransactionEnd.COMMITTED)
        ),
    ),
    "a fence is called a time-out": (
        Change(kafka_sink, "end_of", _taken_for(TransactionEnd.FENCED, TransactionEnd.TIMED_OUT)),
    ),
    "the time left is ignored": (Change(kafka_sink, "ms_left", _nothing),),
    **planted_modes.PLANTED,
}


STRICT: Final = (
    "W5: attempt numbers in ids, without slots",
    "every id is free",
    "older backups are not noticed",
)
"""Faults that look like what is known: other rules make dropped batches of colliding ids."""


FOUND_BY: Final[Mapping[str, int]] = {
    "W1: abort does not look at the log": 1081,
    "W2: no transaction is checked before PREPARED": 146,
    "W5: attempt numbers in ids, without slots": 315,
    "W6: no query id in the log": 7224,
    "W7: no digest of offsets": 950,
    "COMMITTED before the last EndTxn": 12,
    "PREPARED is not logged": 36,
    "abort does not take the entry's number": 1141,
    "every id is free": 808,
    "all runs have the same ids": 6679,
    "a batch that another driver has decided is cleaned up": 44,
    "a copy has the original's ids": 10,
    "older backups are not noticed": 348,
    "abandoned transactions stay open": 22,
    "REPLACED is taken for lost": 1730,
    "a time-out is taken for a commit": 27,
    "a fence is called a time-out": 36,
    "the time left is ignored": 2690,
    "stop leaves tasks that stand still": 166,
    "stop fences no task": 315,
    "stop is silent if it cannot fence": 1915,
    "a continuous query only looks at the sink's log": 19,
    "a batch is handed over without an entry": 19,
    "micro-batches do not take the group over": 11,
    "a batch is written whatever the group has": 126,
    "tasks are fenced before the group is looked at": 18,
    "a late driver takes over from later epochs": 161,
    "a seal is lowered": 3633,
    "partitions that are added are not sealed": 4569,
    "tasks do not look for seals": 144,
    "a continuous query does not look for newer ones": 651,
    "rewritten offsets are taken for a restored checkpoint": 612,
}
"""The seeds of schedules that find them."""
