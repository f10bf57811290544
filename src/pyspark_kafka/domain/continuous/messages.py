"""The messages of tasks to their driver, its commands to them, and the JSON of both.

JSON, not pickle: a peer that connects must not be able to run code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, final

from ..partition_offsets import PartitionOffsets
from ..reading.data_loss import DataLoss
from ..values.errors import BadRecordStats
from .progress import LatencyHistogram, TaskProgress

MAX_TEXT: Final = 4_096
"""The longest text of an error, in characters."""


@final
@dataclass(frozen=True, slots=True, order=True)
class TaskId:
    """One attempt to run the task of a slot.

    ``generation`` counts the submissions of the job, ``slot`` its tasks from 0 on. ``attempt`` is
    unique among all attempts of the slot: Spark may run a task twice.
    """

    generation: int
    slot: int
    attempt: str

    def __str__(self) -> str:
        return f"task {self.slot} (run {self.generation}, attempt {self.attempt})"


@final
@dataclass(frozen=True, slots=True)
class TaskStarted:
    """A task runs and waits for partitions."""

    task: TaskId
    host: str
    process: int


@final
@dataclass(frozen=True, slots=True)
class TaskReport:
    """For each partition of a task, the offset below which every output is acknowledged."""

    task: TaskId
    offsets: PartitionOffsets
    progress: TaskProgress = field(default_factory=TaskProgress)


@final
@dataclass(frozen=True, slots=True)
class TaskLostData:
    """A task skipped records that are gone or exceed a limit, as the options allow."""

    task: TaskId
    loss: DataLoss


@final
@dataclass(frozen=True, slots=True)
class TaskFailed:
    """A task ends with an error; a restart would meet a permanent one again."""

    task: TaskId
    condition: str
    message: str
    is_permanent: bool


@final
@dataclass(frozen=True, slots=True)
class TaskDrained:
    """A task has stopped: all that it read is acknowledged and reported."""

    task: TaskId


@final
@dataclass(frozen=True, slots=True)
class AssignPartitions:
    """Read these partitions as well, from these offsets on."""

    offsets: PartitionOffsets


@final
@dataclass(frozen=True, slots=True)
class RevokePartitions:
    """Stop reading these partitions."""

    partitions: PartitionOffsets
    """Their offsets do not matter."""


@final
@dataclass(frozen=True, slots=True)
class StopTask:
    """Read nothing more, wait for acknowledgements, report, and end."""


TaskMessage: TypeAlias = TaskStarted | TaskReport | TaskLostData | TaskFailed | TaskDrained
TaskCommand: TypeAlias = AssignPartitions | RevokePartitions | StopTask


def write_message(message: TaskMessage) -> str:
    """Return a task's message as JSON on one line."""
    task = message.task
    content: dict[str, Any] = {
        "type": type(message).__name__,
        "generation": task.generation,
        "slot": task.slot,
        "attempt": task.attempt,
    }
    match message:
        case TaskStarted():
            content |= {"host": message.host, "process": message.process}
        case TaskReport(_, offsets, progress):
            content |= {
                "offsets": offsets.to_dict(),
                "inputRows": progress.input_rows,
                "outputRows": progress.output_rows,
                "latency": {str(bucket): n for bucket, n in progress.latency.counts.items()},
                "badRecords": progress.bad_records.by_name(),
                "deadLetters": progress.bad_records.dead_letters,
            }
        case TaskLostData(_, loss):
            content |= {
                "condition": loss.condition,
                "reason": loss.reason[:MAX_TEXT],
                "warning": loss.warning[:MAX_TEXT],
                "advice": loss.advice[:MAX_TEXT],
            }
        case TaskFailed():
            content |= {
                "condition": message.condition,
                "message": message.message[:MAX_TEXT],
                "isPermanent": message.is_permanent,
            }
    return json.dumps(content, separators=(",", ":"))


def read_message(text: str | bytes) -> TaskMessage:
    """Parse a task's message.

    :raises ValueError: if it is malformed.
    """
    content = _read(text, _MESSAGES)
    task = TaskId(
        _typed(content, "generation", int),
        _typed(content, "slot", int),
        _typed(content, "attempt", str),
    )
    return _MESSAGES[content["type"]](task, content)


def write_command(command: TaskCommand) -> str:
    """Return a command as JSON on one line."""
    content: dict[str, Any] = {"type": type(command).__name__}
    match command:
        case AssignPartitions(offsets) | RevokePartitions(offsets):
            content["offsets"] = offsets.to_dict()
    return json.dumps(content, separators=(",", ":"))


def read_command(text: str | bytes) -> TaskCommand:
    """Parse a command.

    :raises ValueError: if it is malformed.
    """
    content = _read(text, _COMMANDS)
    return _COMMANDS[content["type"]](content)


def _read(text: str | bytes, known: Mapping[str, object]) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise ValueError("a message is nested too deeply") from error
    # A list as the type could not be looked up.
    if not isinstance(content, dict) or str(content.get("type")) not in known:
        raise ValueError("a message of no known type")
    return content


def _typed(content: Mapping[str, Any], name: str, kind: type) -> Any:
    value = content.get(name)
    # True is an int for isinstance.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"'{name}' of a message is not of type {kind.__name__}")
    return value


def _offsets(content: Mapping[str, Any]) -> PartitionOffsets:
    try:
        return PartitionOffsets.from_dict(_typed(content, "offsets", dict))
    except (AttributeError, TypeError) as error:
        raise ValueError("'offsets' of a message are malformed") from error


def _progress(content: Mapping[str, Any]) -> TaskProgress:
    latency = _typed(content, "latency", dict)
    bad = _counts(content, "badRecords")
    return TaskProgress(
        _typed(content, "inputRows", int),
        _typed(content, "outputRows", int),
        LatencyHistogram({int(bucket): _typed(latency, bucket, int) for bucket in latency}),
        BadRecordStats.from_names(bad, _typed(content, "deadLetters", int)),
    )


def _counts(content: Mapping[str, Any], name: str) -> dict[str, int]:
    counts = _typed(content, name, dict)
    return {each: _typed(counts, each, int) for each in counts}


_LOSS_FIELDS: Final = ("condition", "reason", "warning", "advice")

_MESSAGES: Final[Mapping[str, Callable[[TaskId, Mapping[str, Any]], TaskMessage]]] = {
    "TaskStarted": lambda task, content: TaskStarted(
        task, _typed(content, "host", str), _typed(content, "process", int)
    ),
    "TaskReport": lambda task, content: TaskReport(task, _offsets(content), _progress(content)),
    "TaskLostData": lambda task, content: TaskLostData(
        task, DataLoss(*(_typed(content, name, str) for name in _LOSS_FIELDS))
    ),
    "TaskFailed": lambda task, content: TaskFailed(
        task,
        _typed(content, "condition", str),
        _typed(content, "message", str),
        _typed(content, "isPermanent", bool),
    ),
    "TaskDrained": lambda task, _content: TaskDrained(task),
}

_COMMANDS: Final[Mapping[str, Callable[[Mapping[str, Any]], TaskCommand]]] = {
    "AssignPartitions": lambda content: AssignPartitions(_offsets(content)),
    "RevokePartitions": lambda content: RevokePartitions(_offsets(content)),
    "StopTask": lambda _content: StopTask(),
}
