"""One run of the tasks of a continuous query, as its driver knows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from ...domain.continuous.messages import TaskId
    from ...domain.topic_partition import TopicPartition


class JobFailedError(Exception):
    """A job has ended or cannot go on; it may be started again."""


@final
@dataclass(slots=True)
class ContinuousJob:
    """The slots of a job, and the task that runs in each; times are monotonic, in seconds."""

    generation: int
    partitions: dict[int, list[TopicPartition]]
    """The partitions of each slot, and an empty list for a slot without any."""

    start_by: float
    tasks: dict[int, TaskId] = field(default_factory=dict)
    heard_at: dict[int, float] = field(default_factory=dict)
    drained: set[int] = field(default_factory=set)
    failure: str = ""
    failed_at: dict[int, float] = field(default_factory=dict)
    """Slots whose task has failed and not started again."""

    @property
    def is_complete(self) -> bool:
        """Whether all tasks have started."""
        return len(self.tasks) == len(self.partitions)

    @property
    def is_drained(self) -> bool:
        """Whether all tasks that have started have stopped in order."""
        return self.drained >= self.tasks.keys() - self.failed_at.keys()

    def start(self, task: TaskId, now: float) -> bool:
        """Note that a task has started; return whether it is the first of its slot."""
        is_first = task.slot not in self.tasks
        self.tasks[task.slot] = task
        self.heard_at[task.slot] = now
        self.failed_at.pop(task.slot, None)
        return is_first

    def fail(self, task: TaskId, reason: str, now: float) -> None:
        """Note that a task has failed."""
        self.failure = reason
        self.failed_at[task.slot] = now
        self.heard_at.pop(task.slot, None)

    def hear(self, task: TaskId, now: float) -> bool:
        """Note a message of a task; return whether it is of this job and not of an old attempt."""
        if self.tasks.get(task.slot) != task:
            return False
        self.heard_at[task.slot] = now
        return True

    def silent_task(self, now: float, timeout_s: float) -> TaskId | None:
        """Return a task that has sent nothing for too long."""
        for slot, heard_at in self.heard_at.items():
            if slot not in self.drained and now - heard_at > timeout_s:
                return self.tasks[slot]
        return None
