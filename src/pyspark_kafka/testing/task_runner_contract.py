"""The contract suite of ``TaskRunner``."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

import pytest

from ..ports.clock import Deadline
from ..ports.continuous import TaskRunner
from .fixtures import required_fixture
from .world import PATIENCE_S, await_until

TASKS: Final = 2

MAX_SECONDS: Final = 2 * PATIENCE_S
"""How long a task waits, and how long a test waits for the end of a job."""

_SETTLED_SECONDS: Final = 0.2
"""How long a test watches that nothing happens."""


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """A directory in which tasks, perhaps in other processes, report to a test that they run."""

    directory: Path
    max_seconds: float = MAX_SECONDS

    def arrive(self, slot: int, attempt: str) -> None:
        """Report that a task runs."""
        (self.directory / f"{slot} {attempt}").touch()

    def arrivals(self) -> list[tuple[int, str]]:
        """Return the slots and attempts of the tasks that have run, in the order of slots."""
        names = (path.name.split(" ", 1) for path in self.directory.glob("[0-9]* *"))
        return sorted((int(slot), attempt) for slot, attempt in names)

    def have_all_arrived(self) -> bool:
        """Return whether each slot has run."""
        return len(self.arrivals()) >= TASKS

    def release(self) -> None:
        """End the tasks that wait."""
        (self.directory / "release").touch()

    def is_released(self) -> bool:
        """Return whether tasks that wait are to end."""
        return (self.directory / "release").exists()

    def await_release(self) -> None:
        """Wait as a task until a test releases it, and fail if it never does."""
        self.wait_until(self.is_released, "the task was not released")

    def wait_until(self, condition: Callable[[], bool], problem: str) -> None:
        """Wait as a task until a condition is true, and fail if it is not in time."""
        if not Deadline.after(self.max_seconds).poll(condition, 0.02):
            raise TimeoutError(problem)


@dataclass(frozen=True, slots=True)
class MeetingTask:
    """Ends when all tasks run at once, and fails if they never do."""

    rendezvous: Rendezvous

    def __call__(self, slot: int, attempt: str) -> None:
        """Run as a task."""
        self.rendezvous.arrive(slot, attempt)
        self.rendezvous.wait_until(self.rendezvous.have_all_arrived, "the tasks do not run at once")


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """Waits in some slots until it is released, and returns at once in others."""

    rendezvous: Rendezvous
    slots: Collection[int] = range(TASKS)

    def __call__(self, slot: int, attempt: str) -> None:
        """Run as a task."""
        self.rendezvous.arrive(slot, attempt)
        if slot in self.slots:
            self.rendezvous.await_release()


@dataclass(frozen=True, slots=True)
class FailingTask:
    """Fails ``seconds`` after it is released."""

    rendezvous: Rendezvous
    seconds: float

    def __call__(self, slot: int, attempt: str) -> None:
        """Run as a task."""
        self.rendezvous.arrive(slot, attempt)
        self.rendezvous.await_release()
        time.sleep(self.seconds)
        raise ValueError("fails after the cancellation")


def fail_in_slot_1(slot: int, _attempt: str) -> None:
    """Raise an error of two lines in slot 1, and return in others."""
    if slot == 1:
        raise ValueError("slot 1 fails\non purpose")


def fail_in_every_slot(_slot: int, _attempt: str) -> None:
    """Raise an error."""
    raise ValueError("runs beside another job")


def await_end(runner: TaskRunner, seconds: float = MAX_SECONDS) -> None:
    """Wait until a job has ended."""
    await_until(lambda: not runner.is_running(), seconds)


class TaskRunnerContract:
    """The contract of ``TaskRunner``; a subclass overrides the fixture ``runner``.

    The runner has two slots at least. The fixture cancels jobs that a failed test leaves running.
    """

    max_seconds: ClassVar[float] = MAX_SECONDS

    runner = required_fixture("Return the runner under test.")

    @pytest.fixture
    def rendezvous(self, tmp_path: Path) -> Rendezvous:
        """Return an empty directory for the tasks of a test."""
        return Rendezvous(tmp_path, self.max_seconds)

    def test_nothing_runs_before_the_start(self, runner: TaskRunner) -> None:
        """A new runner is not running, has not failed, and has nothing to cancel."""
        runner.cancel(0)
        assert not runner.is_running()
        assert runner.failure() is None

    def test_it_has_slots(self, runner: TaskRunner) -> None:
        """The number of slots is unknown, or enough for the tasks of these tests."""
        slots = runner.available_slots()
        assert slots is None or slots >= TASKS

    def test_every_slot_runs_once_and_all_at_once(
        self, runner: TaskRunner, rendezvous: Rendezvous
    ) -> None:
        """Tasks that wait for each other end, and each slot was run once."""
        runner.start(TASKS, MeetingTask(rendezvous))
        await_end(runner, self.max_seconds)
        assert runner.failure() is None
        assert [slot for slot, _ in rendezvous.arrivals()] == list(range(TASKS))

    def test_a_job_runs_until_its_tasks_end(
        self, runner: TaskRunner, rendezvous: Rendezvous
    ) -> None:
        """The start returns while tasks wait for a later release."""
        self._start(runner, WaitingTask(rendezvous))
        assert runner.is_running()
        self._end_well(runner, rendezvous)

    @pytest.mark.parametrize("slot", range(TASKS))
    def test_a_job_runs_until_its_last_task_ends(
        self, runner: TaskRunner, rendezvous: Rendezvous, slot: int
    ) -> None:
        """A job whose other tasks have ended is running."""
        self._start(runner, WaitingTask(rendezvous, {slot}))
        # The end of the other tasks is not reported.
        assert not Deadline.after(_SETTLED_SECONDS).poll(lambda: not runner.is_running(), 0.02)
        self._end_well(runner, rendezvous)

    def test_a_second_job_at_the_same_time_is_refused(
        self, runner: TaskRunner, rendezvous: Rendezvous
    ) -> None:
        """One job runs at a time, and the second start does not affect it."""
        runner.start(1, WaitingTask(rendezvous))
        await_until(lambda: bool(rendezvous.arrivals()), self.max_seconds)
        with pytest.raises(RuntimeError, match="still running"):
            runner.start(1, fail_in_every_slot)
        assert runner.is_running()
        self._end_well(runner, rendezvous)
        assert len(rendezvous.arrivals()) == 1

    def test_a_task_that_fails_ends_the_job(self, runner: TaskRunner) -> None:
        """The failure names the task's exception, on one line."""
        self._fail(runner)
        failure = runner.failure()
        assert failure is not None
        assert failure.startswith("ValueError: slot 1 fails")
        assert "\n" not in failure

    def test_a_failed_task_is_run_again_only_where_that_is_known(
        self, runner: TaskRunner, rendezvous: Rendezvous
    ) -> None:
        """A failed task runs once, unless the runner declares that it may run again."""
        rendezvous.release()
        runner.start(1, FailingTask(rendezvous, 0))
        await_end(runner, self.max_seconds)
        attempts = [attempt for _, attempt in rendezvous.arrivals()]
        assert len(attempts) == 1 or runner.runs_failed_tasks_again()

    def test_a_failure_is_kept(self, runner: TaskRunner) -> None:
        """A cancellation of a job that has failed changes nothing."""
        self._fail(runner)
        failure = runner.failure()
        runner.cancel(0)
        assert failure is not None
        assert runner.failure() == failure

    def test_a_job_can_follow_another(self, runner: TaskRunner, rendezvous: Rendezvous) -> None:
        """A job that ends well after one that failed has no failure, and new attempts."""
        self._fail(runner)
        for _ in range(2):
            runner.start(1, MeetingTask(rendezvous))
            await_until(lambda: bool(rendezvous.arrivals()), self.max_seconds)
            rendezvous.arrive(1, "test")
            await_end(runner, self.max_seconds)
            assert runner.failure() is None
        attempts = [attempt for slot, attempt in rendezvous.arrivals() if slot == 0]
        assert len(set(attempts)) == 2

    def test_a_cancelled_job_ends_without_failure(
        self, runner: TaskRunner, rendezvous: Rendezvous
    ) -> None:
        """A cancellation waits for the end of tasks; that they fail meanwhile is no failure."""
        self._start(runner, FailingTask(rendezvous, _SETTLED_SECONDS))
        timer = threading.Timer(_SETTLED_SECONDS, rendezvous.release)
        timer.start()
        runner.cancel(self.max_seconds)
        assert not runner.is_running()
        assert runner.failure() is None
        timer.join()

    def test_a_job_can_follow_a_cancelled_one(
        self, runner: TaskRunner, rendezvous: Rendezvous
    ) -> None:
        """The failures of the later job are reported."""
        self._start(runner, WaitingTask(rendezvous))
        runner.cancel(0)
        rendezvous.release()
        await_end(runner, self.max_seconds)
        self._fail(runner)
        assert runner.failure() is not None

    def test_a_cancellation_ends_in_time(self, runner: TaskRunner, rendezvous: Rendezvous) -> None:
        """Tasks that do not end in time leave the job running, and are not a failure."""
        self._start(runner, WaitingTask(rendezvous))
        runner.cancel(0)
        assert runner.is_running()
        self._end_well(runner, rendezvous)

    def _fail(self, runner: TaskRunner) -> None:
        runner.start(TASKS, fail_in_slot_1)
        await_end(runner, self.max_seconds)

    def _end_well(self, runner: TaskRunner, rendezvous: Rendezvous) -> None:
        rendezvous.release()
        await_end(runner, self.max_seconds)
        assert runner.failure() is None

    def _start(self, runner: TaskRunner, task: WaitingTask | FailingTask) -> None:
        runner.start(TASKS, task)
        await_until(task.rendezvous.have_all_arrived, self.max_seconds)
