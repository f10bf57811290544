"""Faults in taking over between modes, in stopping, and in rewriting offsets."""

from collections.abc import Mapping
from typing import Any, Final

from pyspark_kafka.application.continuous.epochs import EpochLog
from pyspark_kafka.application.continuous.exclusion import WriterExclusion
from pyspark_kafka.application.continuous.execution import ContinuousExecution
from pyspark_kafka.application.writing import group_take_over, kafka_sink
from pyspark_kafka.application.writing.kafka_sink import KafkaSink
from pyspark_kafka.application.writing.sink_checkpoint import SinkCheckpoint
from pyspark_kafka.domain.checkpoints.entries import BatchState
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.writing.group_seal import GroupSeal

from ..engine.simulator import Change

_SINK: Final[Any] = KafkaSink
_EXECUTION: Final[Any] = ContinuousExecution
_COMMIT_STRAYS: Final = _EXECUTION._commit_strays


def _nothing(*_: object) -> None:
    """Do nothing."""


def _require_undecided(self: Any, batch_id: int) -> None:
    _, entry = self._newest()
    is_decided = entry.batch_id == batch_id and entry.state is not BatchState.DROPPED
    if is_decided or entry.state is BatchState.PREPARED:
        raise self._decided(entry)


def _hand_over_without_an_entry(self: Any, batch_id: int) -> None:
    _require_undecided(self, batch_id)
    self._abort_abandoned(self._abandoned((), self._checkpoint.last().query_id), ())


def _take_over_unchecked(
    transactions: Any, group_id: str, offsets: Any, seal: GroupSeal, _: object = None
) -> Any:
    return group_take_over.take_over_group(transactions, group_id, offsets, seal)


def _take_over_before_the_check(
    transactions: Any, group_id: str, offsets: Any, seal: GroupSeal, check: Any
) -> Any:
    return group_take_over._take_over_once(transactions, group_id, offsets, seal, check)


def _only_look(self: Any, offsets: Any) -> Any:
    found = self.transactions().committed(self.settings.group_id, offsets.keys())
    return {partition: each.offset for partition, each in found.items()}


def _commit_strays_quietly(self: Any, exclusion: Any) -> None:
    _COMMIT_STRAYS(self, exclusion)


PLANTED: Final[Mapping[str, tuple[Change, ...]]] = {
    "stop leaves tasks that stand still": (Change(_EXECUTION, "_end_strays", _nothing),),
    "stop fences no task": (Change(WriterExclusion, "end_tasks", _only_look),),
    "stop is silent if it cannot fence": (
        Change(_EXECUTION, "_commit_strays", _commit_strays_quietly),
    ),
    "a continuous query only looks at the sink's log": (
        Change(_SINK, "hand_over", _require_undecided),
    ),
    "a batch is handed over without an entry": (
        Change(_SINK, "hand_over", _hand_over_without_an_entry),
    ),
    "micro-batches do not take the group over": (Change(_SINK, "_end_continuous_query", _nothing),),
    "a batch is written whatever the group has": (
        Change(kafka_sink, "take_over_group", _take_over_unchecked),
    ),
    "tasks are fenced before the group is looked at": (
        Change(kafka_sink, "take_over_group", _take_over_before_the_check),
        Change(SinkCheckpoint, "is_epoch", lambda *_: False),
    ),
    "a late driver takes over from later epochs": (
        Change(SinkCheckpoint, "is_epoch", lambda *_: False),
    ),
    "a seal is lowered": (
        Change(GroupSeal, "beside", lambda self, _: self),
        Change(_SINK, "_require_last", _nothing),
    ),
    "partitions that are added are not sealed": (
        Change(SinkCheckpoint, "added", lambda *_: frozenset()),
    ),
    "tasks do not look for seals": (Change(ContinuousSettings, "require_unsealed", _nothing),),
    "a continuous query does not look for newer ones": (
        Change(EpochLog, "require_newest", _nothing),
    ),
    "rewritten offsets are taken for a restored checkpoint": (
        Change(SinkCheckpoint, "_rewritten", lambda *_: set()),
    ),
}
