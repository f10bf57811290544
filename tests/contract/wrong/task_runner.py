import time
from collections.abc import Callable
from typing import Any, Final

import pytest

from pyspark_kafka.adapters.continuous.threads import ThreadTaskRunner
from pyspark_kafka.ports.continuous import TaskRunner
from pyspark_kafka.testing import TaskRunnerContract as Suite
from pyspark_kafka.testing import await_until

from .adapter import Faults, PassesOn

WAIT_SECONDS: Final = 1.0
"""How long the tests of wrong runners, and their tasks, wait for what does not come."""


class Passing(PassesOn, TaskRunner):
    """Passes every call to another runner."""


def _suite(adapter: Callable[[Any], Any], seconds: float = WAIT_SECONDS) -> type:
    class Held(Suite):
        max_seconds = seconds

        @pytest.fixture
        def runner(self):
            made = adapter(ThreadTaskRunner())
            yield made
            await_until(lambda: not made.inner.is_running())

    return Held


wrong: Final = Faults(Passing, _suite, _suite(Passing, 60))


@wrong(Suite.test_every_slot_runs_once_and_all_at_once, "start")
def runs_a_task_when_the_one_before_has_ended(self, tasks, run):
    def run_all(_slot: int, attempt: str) -> None:
        for slot in range(tasks):
            run(slot, attempt)

    self.inner.start(1, run_all)


@wrong(Suite.test_a_job_runs_until_its_tasks_end, "start")
def returns_from_the_start_when_the_job_has_ended(self, tasks, run):
    self.inner.start(tasks, run)
    while self.is_running():
        time.sleep(0.01)


@wrong(Suite.test_a_task_that_fails_ends_the_job, "start")
def does_not_run_the_last_slot_of_several(self, tasks, run):
    self.inner.start(max(1, tasks - 1), run)


@wrong(Suite.test_every_slot_runs_once_and_all_at_once, "start")
def begins_with_slot_1(self, tasks, run):
    self.inner.start(tasks, lambda slot, attempt: run(slot + 1, attempt))


@wrong(Suite.test_every_slot_runs_once_and_all_at_once, "start")
def runs_each_slot_twice(self, tasks, run):
    self.inner.start(2 * tasks, lambda slot, attempt: run(slot // 2, attempt))


@wrong(Suite.test_a_job_can_follow_another, "start")
def gives_the_tasks_of_each_job_the_same_attempts(self, tasks, run):
    self.inner.start(tasks, lambda slot, _attempt: run(slot, f"attempt-{slot}"))


@wrong(Suite.test_a_second_job_at_the_same_time_is_refused, "start")
def starts_a_job_beside_another(self, tasks, run):
    if self.is_running():
        self.inner = ThreadTaskRunner()
    self.inner.start(tasks, run)


@wrong(Suite.test_nothing_runs_before_the_start, "failure")
def has_failed_before_it_runs_a_job(self):
    return "No job was started." if not self.inner._threads else self.inner.failure()


@wrong(Suite.test_a_task_that_fails_ends_the_job, "failure")
def does_not_know_why_a_task_failed(self):
    return None


@wrong(Suite.test_a_task_that_fails_ends_the_job, "failure")
def does_not_say_why_a_task_failed(self):
    return self.inner.failure() and "A task failed."


@wrong(Suite.test_a_task_that_fails_ends_the_job, "failure")
def returns_a_failure_on_several_lines(self):
    failure = self.inner.failure()
    return failure and failure.replace(" on purpose", "\non purpose")


@wrong(Suite.test_a_job_can_follow_another)
class KeepsFailures(Passing):
    """Returns the failure of an earlier job, too."""

    def failure(self):
        self.seen["last"] = self.inner.failure() or self.seen.get("last")
        return self.seen["last"]

    def start(self, tasks, run):
        self.failure()
        self.inner.start(tasks, run)


@wrong(Suite.test_a_job_runs_until_its_last_task_ends, "is_running")
def says_that_the_job_has_ended_when_its_first_task_has(self):
    threads = self.inner._threads
    return bool(threads) and all(thread.is_alive() for thread in threads)


@wrong(Suite.test_a_task_that_fails_ends_the_job, "is_running")
def does_not_notice_the_end_of_a_job(self):
    return bool(self.inner._threads)


@wrong(Suite.test_a_failed_task_is_run_again_only_where_that_is_known, "start")
def runs_a_task_that_fails_again_and_does_not_say_so(self, tasks, run):
    def run_again(slot: int, attempt: str) -> None:
        try:
            run(slot, f"{attempt}-1")
        except ValueError:
            run(slot, f"{attempt}-2")

    self.inner.start(tasks, run_again)


@wrong(Suite.test_it_has_slots, "available_slots")
def has_no_slots(self):
    return 0


@wrong(Suite.test_a_cancelled_job_ends_without_failure, "cancel")
def returns_from_a_cancellation_at_once(self, timeout_s):
    del timeout_s
    self.inner.cancel(0)


@wrong(Suite.test_a_cancellation_ends_in_time, "cancel")
def waits_longer_for_the_end_of_a_job_than_it_is_told_to(self, timeout_s):
    self.inner.cancel(timeout_s + 2 * WAIT_SECONDS)


@wrong(Suite.test_a_cancelled_job_ends_without_failure, "cancel")
def takes_what_happens_after_a_cancellation_for_a_failure(self, timeout_s):
    for thread in self.inner._threads:
        thread.join(timeout_s)


@wrong(Suite.test_a_failure_is_kept, "cancel")
def forgets_a_failure_when_it_is_cancelled(self, timeout_s):
    self.inner.cancel(timeout_s)
    self.inner._failures.clear()


@wrong(Suite.test_a_job_can_follow_a_cancelled_one)
class StaysCancelled(Passing):
    """Has no failures after a cancellation."""

    def failure(self):
        return None if self.seen.get("is_cancelled") else self.inner.failure()

    def cancel(self, timeout_s):
        self.seen["is_cancelled"] = self.is_running()
        self.inner.cancel(timeout_s)
