"""Runners that break a promise of ``TaskRunner``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pytest

from pyspark_kafka.adapters.continuous.threads import ThreadTaskRunner
from pyspark_kafka.ports.continuous import TaskRunner
from pyspark_kafka.testing import TaskRunnerContract as Suite
from pyspark_kafka.testing import await_until

from .adapter import PortFaults, wrong_with

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[[int, str], None]

WAIT_SECONDS: Final = 1.0
"""How long the tests of wrong runners, and their tasks, wait for what does not come."""


class Passing(TaskRunner):
    """Passes every call to another runner."""

    def __init__(self) -> None:
        self.runner = ThreadTaskRunner()

    def start(self, tasks: int, run: Run) -> None:
        self.runner.start(tasks, run)

    def is_running(self) -> bool:
        return self.runner.is_running()

    def failure(self) -> str | None:
        return self.runner.failure()

    def cancel(self, timeout_s: float) -> None:
        self.runner.cancel(timeout_s)


class OneAfterAnother(Passing):
    """Runs a task when the one before has ended."""

    def start(self, tasks: int, run: Run) -> None:
        def run_all(_slot: int, attempt: str) -> None:
            for slot in range(tasks):
                run(slot, attempt)

        self.runner.start(1, run_all)


class Blocking(Passing):
    """Returns from the start when the job has ended."""

    def start(self, tasks: int, run: Run) -> None:
        super().start(tasks, run)
        while self.is_running():
            time.sleep(0.01)


class MissesASlot(Passing):
    """Does not run the last slot of several."""

    def start(self, tasks: int, run: Run) -> None:
        super().start(max(1, tasks - 1), run)


class CountsFromOne(Passing):
    """Begins with slot 1."""

    def start(self, tasks: int, run: Run) -> None:
        super().start(tasks, lambda slot, attempt: run(slot + 1, attempt))


class RunsTwice(Passing):
    """Runs each slot twice."""

    def start(self, tasks: int, run: Run) -> None:
        super().start(2 * tasks, lambda slot, attempt: run(slot // 2, attempt))


class OneAttempt(Passing):
    """Gives the tasks of each job the same attempts."""

    def start(self, tasks: int, run: Run) -> None:
        super().start(tasks, lambda slot, _attempt: run(slot, f"attempt-{slot}"))


class ManyJobs(Passing):
    """Starts a job beside another."""

    def start(self, tasks: int, run: Run) -> None:
        if self.is_running():
            self.runner = ThreadTaskRunner()
        super().start(tasks, run)


class FailsBeforeItStarts(Passing):
    """Has failed before it runs a job."""

    def failure(self) -> str | None:
        return "No job was started." if not self.runner._threads else super().failure()


class LosesFailures(Passing):
    """Does not know why a task failed."""

    def failure(self) -> str | None:
        return None


class HidesFailures(Passing):
    """Does not say why a task failed."""

    def failure(self) -> str | None:
        return super().failure() and "A task failed."


class SeveralLines(Passing):
    """Returns a failure on several lines."""

    def failure(self) -> str | None:
        failure = super().failure()
        return failure and failure.replace(" on purpose", "\non purpose")


class KeepsFailures(Passing):
    """Returns the failure of an earlier job, too."""

    def __init__(self) -> None:
        super().__init__()
        self._last: str | None = None

    def failure(self) -> str | None:
        self._last = super().failure() or self._last
        return self._last

    def start(self, tasks: int, run: Run) -> None:
        self.failure()
        super().start(tasks, run)


class EndsWithATask(Passing):
    """Says that the job has ended when its first task has."""

    def is_running(self) -> bool:
        threads = self.runner._threads
        return bool(threads) and all(thread.is_alive() for thread in threads)


class NeverEnds(Passing):
    """Does not notice the end of a job."""

    def is_running(self) -> bool:
        return bool(self.runner._threads)


class RunsAgain(Passing):
    """Runs a task that fails again, and does not say so."""

    def start(self, tasks: int, run: Run) -> None:
        def run_again(slot: int, attempt: str) -> None:
            try:
                run(slot, f"{attempt}-1")
            except ValueError:
                run(slot, f"{attempt}-2")

        super().start(tasks, run_again)


class NoSlots(Passing):
    """Has no slots."""

    def available_slots(self) -> int | None:
        return 0


class CancelsWithoutWaiting(Passing):
    """Returns from a cancellation at once."""

    def cancel(self, timeout_s: float) -> None:
        del timeout_s
        super().cancel(0)


class WaitsTooLong(Passing):
    """Waits longer for the end of a job than it is told to."""

    def cancel(self, timeout_s: float) -> None:
        super().cancel(timeout_s + 2 * WAIT_SECONDS)


class FailsWhenCancelled(Passing):
    """Takes what happens after a cancellation for a failure."""

    def cancel(self, timeout_s: float) -> None:
        for thread in self.runner._threads:
            thread.join(timeout_s)


class CancelsFailures(Passing):
    """Forgets a failure when it is cancelled."""

    def cancel(self, timeout_s: float) -> None:
        super().cancel(timeout_s)
        self.runner._failures.clear()


class StaysCancelled(Passing):
    """Has no failures after a cancellation."""

    def __init__(self) -> None:
        super().__init__()
        self._is_cancelled = False

    def failure(self) -> str | None:
        return None if self._is_cancelled else super().failure()

    def cancel(self, timeout_s: float) -> None:
        self._is_cancelled = self.is_running()
        super().cancel(timeout_s)


def _suite(adapter: type[Passing], seconds: float = WAIT_SECONDS) -> type:
    class Held(Suite):
        max_seconds = seconds

        @pytest.fixture
        def runner(self):
            made = adapter()
            yield made
            await_until(lambda: not made.runner.is_running())

    return Held


_wrong: Final = wrong_with(_suite)


FAULTS: Final = PortFaults(
    _suite(Passing, 60),
    (
        *_wrong(Suite.test_every_slot_runs_once_and_all_at_once, OneAfterAnother),
        *_wrong(Suite.test_a_job_runs_until_its_tasks_end, Blocking),
        *_wrong(Suite.test_a_task_that_fails_ends_the_job, MissesASlot),
        *_wrong(Suite.test_every_slot_runs_once_and_all_at_once, CountsFromOne),
        *_wrong(Suite.test_every_slot_runs_once_and_all_at_once, RunsTwice),
        *_wrong(Suite.test_a_job_can_follow_another, OneAttempt),
        *_wrong(Suite.test_a_second_job_at_the_same_time_is_refused, ManyJobs),
        *_wrong(Suite.test_nothing_runs_before_the_start, FailsBeforeItStarts),
        *_wrong(Suite.test_a_task_that_fails_ends_the_job, LosesFailures),
        *_wrong(Suite.test_a_task_that_fails_ends_the_job, HidesFailures),
        *_wrong(Suite.test_a_task_that_fails_ends_the_job, SeveralLines),
        *_wrong(Suite.test_a_job_can_follow_another, KeepsFailures),
        *_wrong(Suite.test_a_job_runs_until_its_last_task_ends, EndsWithATask),
        *_wrong(Suite.test_a_task_that_fails_ends_the_job, NeverEnds),
        *_wrong(Suite.test_a_failed_task_is_run_again_only_where_that_is_known, RunsAgain),
        *_wrong(Suite.test_it_has_slots, NoSlots),
        *_wrong(Suite.test_a_cancelled_job_ends_without_failure, CancelsWithoutWaiting),
        *_wrong(Suite.test_a_cancellation_ends_in_time, WaitsTooLong),
        *_wrong(Suite.test_a_cancelled_job_ends_without_failure, FailsWhenCancelled),
        *_wrong(Suite.test_a_failure_is_kept, CancelsFailures),
        *_wrong(Suite.test_a_job_can_follow_a_cancelled_one, StaysCancelled),
    ),
)
