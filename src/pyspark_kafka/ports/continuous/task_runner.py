"""Running the tasks of a continuous query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class TaskRunner(ABC):
    """Runs one job at a time, whose tasks run at once and without an end."""

    @abstractmethod
    def start(self, tasks: int, run: Callable[[int, str], None]) -> None:
        """Start a job: ``run(slot, attempt)`` for each slot below ``tasks``, as a task each.

        Returns at once. ``run`` is pickled to another process perhaps. An attempt is a text that is
        unique within its slot; a task may be run again under another.

        :raises RuntimeError: if the last job is running.
        """

    def available_slots(self) -> int | None:
        """Return how many tasks can run at once, or ``None`` if that is not known."""
        return None

    def runs_failed_tasks_again(self) -> bool:
        """Return whether a task that fails is perhaps run again within the job."""
        return False

    @abstractmethod
    def is_running(self) -> bool:
        """Return whether the job has not ended; true until all of its tasks have."""

    @abstractmethod
    def failure(self) -> str | None:
        """Return why the last job failed, on one line; ``None`` if it did not.

        What happens after ``cancel`` is no failure.
        """

    @abstractmethod
    def cancel(self, timeout_s: float) -> None:
        """End the job, and wait for that; what its tasks did not finish is lost.

        The job is running after that if it did not end in time.
        """
