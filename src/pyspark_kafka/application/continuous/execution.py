"""The driver of a continuous query: Spark's ``ContinuousExecution``."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from ...domain.continuous.epochs import Epoch, EpochCoordinator, spread
from ...domain.continuous.messages import (
    AssignPartitions,
    RevokePartitions,
    StopTask,
    TaskDrained,
    TaskFailed,
    TaskLostData,
    TaskReport,
    TaskStarted,
)
from ...domain.continuous.settings import RestartStrategy
from ...domain.errors import (
    BrokerUnreachableError,
    MetadataLogError,
    PysparkKafkaError,
    Recovery,
    UnknownTopicError,
)
from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading import data_loss
from ...domain.reading.errors import DataLossError
from ...ports.clock import Deadline
from .epochs import CatchUps, EpochCommitter
from .errors import (
    NotEnoughSlotsError,
    RestartsExhaustedError,
    TaskFailedError,
    UncertainEndError,
    without_advice,
)
from .stream import ShortRequests

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from contextlib import AbstractContextManager

    from ...domain.continuous.messages import TaskId, TaskMessage
    from ...domain.continuous.settings import ExecutionLimits
    from ...domain.topic_partition import TopicPartition
    from ...ports.continuous import EpochChannel, TaskRunner
    from ...ports.reading import SourceEvents
    from .epochs import EpochLog
    from .exclusion import WriterExclusion
    from .progress import ProgressRecorder
    from .stream import KafkaContinuousStream


class JobFailedError(Exception):
    """A job has ended or cannot continue; it may be started again."""


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
    error: TaskFailedError | None = None
    """An error of a task that a restart would meet again."""

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

    @property
    def unfinished(self) -> list[TaskId]:
        """The tasks that have started and not stopped in order."""
        return [task for slot, task in sorted(self.tasks.items()) if slot not in self.drained]

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

    def raise_error(self) -> None:
        """Raise the error of a task that a restart would meet again, if there is one."""
        if self.error is not None:
            raise self.error

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


log = logging.getLogger("pyspark_kafka")

_RECEIVE_S: Final = 0.05
"""How long the driver waits for messages before it looks at the time; no record waits for it."""

_PARTITIONS_EVERY_S: Final = 1.0
_CANCEL_S: Final = 30.0
_SLOTS_S: Final = 10.0
"""How long executors may take to register before fewer tasks run, or none."""

_RETRY_S: Final = 10.0
"""How long Spark may take to run a failed task again."""

_ABANDON_S: Final = 2.0
"""How long the other tasks of a failed job may take to end in order."""


@final
class ContinuousExecution:
    """Runs a query in the thread that calls ``run``; other threads may call the other methods."""

    def __init__(  # noqa: PLR0913  # everything that a query uses
        self,
        stream: KafkaContinuousStream,
        epoch_log: EpochLog,
        channel: EpochChannel,
        runner: TaskRunner,
        program: Callable[[int, int], Callable[[int, str], None]],
        *,
        limits: ExecutionLimits,
        events: SourceEvents,
        progress: ProgressRecorder,
        attempt: Callable[[str], AbstractContextManager[Deadline]],
        exclusion: WriterExclusion | None = None,
    ) -> None:
        """Take ``program``, which returns what tasks run, by their generation and first epoch.

        ``attempt`` limits the waits of a block by the kind of its requests to Kafka. Exactly-once
        delivery has an ``exclusion``.
        """
        self._stream = stream
        self._log = epoch_log
        self._channel = channel
        self._runner = runner
        self._program = program
        self._limits = limits
        self._events = events
        self._progress = progress
        self._strategy = RestartStrategy(limits.restarts)
        self._stop_requested = threading.Event()
        self._committer = EpochCommitter(epoch_log, limits.log_outage_s)
        self._requests = ShortRequests(attempt, self._stop_requested.is_set)
        self._catch_ups = CatchUps()
        self._coordinator = EpochCoordinator(Epoch(-1, PartitionOffsets()))
        self._generation = 0
        self._next_epoch = self._next_partitions = 0.0
        self._missing_topics: frozenset[str] = frozenset()
        self._unknown_until: Deadline | None = None
        self._exclusion = exclusion
        self._job: ContinuousJob | None = None
        self._first_epoch = 0
        self._has_strays = False
        """Whether a task of this run that has not ended in order may still write."""

        self._are_tasks_ended = False

    # For other threads

    def stop(self) -> None:
        """Ask the query to stop: tasks finish what they have read."""
        self._stop_requested.set()

    def catch_up(self) -> threading.Event:
        """Return an event that is set once all records that exist now are processed and logged."""
        return self._catch_ups.add()

    # The driver's thread

    def run(self) -> None:
        """Run until ``stop`` or a failure that a restart would not fix.

        :raises PysparkKafkaError: with the reason of that failure.
        """
        try:
            self._recover()
            self._run_jobs()
            self._end()
        finally:
            self._end_tasks()
            if self._runner.is_running():
                log.warning("Tasks of a continuous query that has ended still run, and may write")

    def _recover(self) -> None:
        """Continue after the last epoch of the log, under a new epoch that identifies this run."""
        logged = self._log.recover()
        start = logged.last or Epoch(-1, self._stream.initial_offset())
        if self._exclusion is not None:
            # Before this run writes anything: an epoch would make the next one seem to be newer.
            self._exclusion.require_unsealed(start.offsets, (logged.planned or start).number)
            if logged.planned is not None:
                self._exclusion.take_batch(logged.planned.number)
        self._coordinator = EpochCoordinator(start, logged.planned)
        self._first_epoch = start.number + 1
        if logged.planned is None:
            # Initial offsets are logged before the first record is read; and a run that is still
            # active fails to write this epoch, and ends.
            self._committer.commit(self._coordinator, Epoch(start.number + 1, start.offsets))

    def _wait_after(self, failure: JobFailedError) -> None:
        self._runner.cancel(_CANCEL_S)
        delay = self._strategy.delay_after_failure(time.monotonic())
        if delay is None:
            limits = self._limits.restarts
            raise RestartsExhaustedError(limits.max_restarts, limits.within_s, str(failure))
        log.warning("The tasks of a continuous query start again: %s", failure)
        self._progress.restarted()
        self._stop_requested.wait(delay)

    def _run_jobs(self) -> None:
        """Run tasks until the query stops."""
        try:
            while not self._run_job():
                pass
        except PysparkKafkaError as error:
            is_replaced = error.recovery is Recovery.FATAL
            may_write = self._job is not None or self._has_strays
            if self._exclusion is not None and may_write and not is_replaced:
                self._end_after_failure()
            raise

    def _run_job(self) -> bool:
        """Run the tasks until the query stops, or until they fail; return whether it stopped."""
        self._job = None
        try:
            job = self._job = self._start_job()
            while not self._stop_requested.is_set():
                self._turn(job)
        except JobFailedError as failure:
            self._has_strays = True
            if self._job is not None:
                # The others report what is acknowledged, so that less is repeated.
                self._drain(self._job, _ABANDON_S)
                self._job.raise_error()
            self._coordinator.release()
            self._wait_after(failure)
            return self._stop_requested.is_set()
        self._drain(job, self._limits.stop_timeout_s)
        job.raise_error()
        self._has_strays |= bool(job.unfinished)
        return True

    def _end(self) -> None:
        """Log the last epoch, once nothing more is written."""
        uncertain = self._end_strays(self._job) if self._has_strays else None
        self._end_epoch(is_final=True)
        if uncertain is not None:
            raise uncertain

    def _end_after_failure(self) -> None:
        """Log what tasks have committed: otherwise no other query could continue."""
        self._has_strays = True
        try:
            if self._job is not None:
                self._drain(self._job, _ABANDON_S)
            self._end()
        except PysparkKafkaError as error:
            log.warning("What a failed continuous query has committed may not be logged: %s", error)

    def _end_tasks(self) -> None:
        if not self._are_tasks_ended:
            self._are_tasks_ended = True
            # Tasks end by themselves without their driver, which is faster than a cancellation.
            self._channel.close()
            self._runner.cancel(_CANCEL_S)

    def _end_strays(self, job: ContinuousJob | None) -> UncertainEndError | None:
        """Stop the writes of tasks that have not ended in order; return why some may still write.

        :raises ConcurrentUpdateError: if another query has taken over.
        """
        self._require_newest()
        unfinished = ", ".join(map(str, job.unfinished)) if job is not None else ""
        if unfinished:
            log.warning(
                "Tasks of a continuous query did not end in order, and are cancelled: %s. What "
                "they have read and not committed is read again by the next query",
                unfinished,
            )
        self._end_tasks()
        if self._exclusion is not None:
            return self._commit_strays(self._exclusion)
        if not self._runner.is_running() or (job is not None and not unfinished):
            return None
        return UncertainEndError(
            f"these tasks have not ended: {unfinished or 'those before the last restart'}",
            "Make sure that their processes have ended before another query uses the checkpoint: "
            "it would write these records again.",
        )

    def _commit_strays(self, exclusion: WriterExclusion) -> UncertainEndError | None:
        """Take what tasks have committed without a report; now none commits any longer."""
        offsets = self._coordinator.offsets
        try:
            committed = PartitionOffsets(exclusion.end_tasks(offsets))
        except PysparkKafkaError as error:
            return UncertainEndError(
                f"its tasks could not be kept from committing: {without_advice(error)}",
                "Start it once more, and stop it, before a query of another kind uses the "
                "checkpoint.",
            )
        later = {each: max(offset, offsets[each]) for each, offset in committed.items()}
        self._coordinator.add(PartitionOffsets(later))
        return None

    def _require_newest(self) -> None:
        """Raise if another query has taken over, as far as the log can be read.

        Tasks that get partitions would fence that query's tasks.
        """
        planned, last = self._coordinator.planned, self._coordinator.last
        try:
            self._log.require_newest((planned or last).number)
        except MetadataLogError as error:
            if not error.is_retriable:
                raise
            log.warning("It is not known whether another query uses the checkpoint: %s", error)

    def _start_job(self) -> ContinuousJob:
        if self._runner.is_running():
            raise JobFailedError("tasks of the last run have not ended")
        if self._generation:
            self._require_newest()
        try:
            self._find_partitions()
        except PysparkKafkaError as error:
            if not self._generation or not error.is_retriable:
                raise
            raise JobFailedError(str(error)) from error
        self._generation += 1
        partitions = self._coordinator.offsets.keys()
        tasks = max(1, min(len(partitions), self._limits.max_tasks or len(partitions)))
        tasks = self._fit(tasks)
        spread_over = spread(partitions, dict.fromkeys(range(tasks), ()))
        job = ContinuousJob(
            self._generation,
            {slot: spread_over.get(slot, []) for slot in range(tasks)},
            time.monotonic() + self._limits.start_timeout_s,
        )
        self._runner.start(tasks, self._program(self._generation, self._first_epoch))
        self._progress.tasks, self._progress.is_processing = tasks, False
        return job

    def _fit(self, tasks: int) -> int:
        """Return how many of these tasks can run at once; executors may be about to register.

        :raises NotEnoughSlotsError: if a number of tasks is set, and it is greater.
        """
        is_set = self._limits.max_tasks is not None
        slots = self._await_slots(1, self._limits.start_timeout_s)
        if slots:
            wanted = tasks if is_set else min(tasks, self._progress.tasks)
            slots = self._await_slots(wanted, _SLOTS_S)
        if slots is None or slots >= tasks or self._stop_requested.is_set():
            return tasks
        if slots and not is_set:
            return slots
        error = NotEnoughSlotsError(tasks, slots)
        if self._generation > 1:
            raise JobFailedError(str(error))
        raise error

    def _await_slots(self, wanted: int, timeout_s: float) -> int | None:
        slots = self._runner.available_slots()
        deadline = Deadline.after(timeout_s)
        while slots is not None and slots < wanted and not deadline.has_passed:
            if self._stop_requested.wait(_RECEIVE_S):
                break
            slots = self._runner.available_slots()
        return slots

    def _turn(self, job: ContinuousJob) -> None:
        for message in self._channel.receive(_RECEIVE_S):
            self._handle(job, message)
        now = time.monotonic()
        self._check(job, now)
        if now >= self._next_partitions:
            self._next_partitions = now + max(_PARTITIONS_EVERY_S, self._limits.epoch_s)
            self._reconfigure(job)
        elif now >= self._next_epoch:
            self._next_epoch = now + self._limits.epoch_s
            self._end_epoch()

    def _drain(self, job: ContinuousJob, timeout_s: float) -> None:
        """Stop the tasks, and wait for their last reports."""
        for task in job.tasks.values():
            self._channel.send(task, StopTask())
        deadline = Deadline.after(timeout_s)
        while not (job.is_drained or deadline.has_passed) and self._runner.is_running():
            self._take_last(job, _RECEIVE_S)
        self._take_last(job, 0)

    def _take_last(self, job: ContinuousJob, timeout_s: float) -> None:
        """Handle messages of tasks that stop; one that starts now gets nothing to read."""
        for message in self._channel.receive(timeout_s):
            if isinstance(message, TaskStarted):
                self._channel.send(message.task, StopTask())
            else:
                self._handle(job, message)

    # Messages of tasks

    def _handle(self, job: ContinuousJob, message: TaskMessage) -> None:
        task, now = message.task, time.monotonic()
        if task.generation == job.generation and isinstance(message, TaskStarted):
            self._start_task(job, task, now)
        elif task.generation == job.generation and job.hear(task, now):
            self._take(job, message)
        else:
            # It was replaced, because it was silent or its executor was lost, and is alive.
            self._channel.send(task, StopTask())

    def _start_task(self, job: ContinuousJob, task: TaskId, now: float) -> None:
        """Let a task read the partitions of its slot, from what an earlier attempt acknowledged."""
        if task.slot not in job.partitions:
            return
        if not job.start(task, now):
            self._has_strays = True
            self._progress.restarted()
            if self._strategy.delay_after_failure(now) is None:
                raise JobFailedError(job.failure or f"{task} started too often")
            self._require_newest()
        self._assign(task, job.partitions[task.slot])
        self._progress.is_processing = job.is_complete

    def _take(self, job: ContinuousJob, message: TaskMessage) -> None:
        match message:
            case TaskReport(task, offsets, work):
                self._coordinator.report(task, offsets)
                self._progress.add(work)
            case TaskLostData(_, loss):
                self._events.data_lost(loss)
            case TaskFailed(task, _, text, is_permanent):
                job.fail(task, text, time.monotonic())
                if is_permanent:
                    job.error = job.error or TaskFailedError(text)
                else:
                    log.warning("A task of a continuous query failed: %s: %s", task, text)
            case TaskDrained(task):
                job.drained.add(task.slot)

    def _assign(self, task: TaskId, partitions: Collection[TopicPartition]) -> None:
        offsets = self._coordinator.assign(task, partitions)
        if offsets:
            self._channel.send(task, AssignPartitions(offsets))

    def _check(self, job: ContinuousJob, now: float) -> None:
        """Raise if the job cannot continue."""
        job.raise_error()
        if not self._runner.is_running():
            raise JobFailedError(self._runner.failure() or job.failure or "all tasks have ended")
        if not job.is_complete and now > job.start_by:
            waited = f" within {self._limits.start_timeout_s:g} s"
            error = NotEnoughSlotsError(len(job.partitions), len(job.tasks), waited)
            if job.generation == 1:
                raise error
            raise JobFailedError(str(error))
        patience_s = _RETRY_S if self._runner.runs_failed_tasks_again() else 0.0
        if any(now - failed_at >= patience_s for failed_at in job.failed_at.values()):
            raise JobFailedError(job.failure)
        silent = job.silent_task(now, self._limits.task_timeout_s)
        if silent is not None:
            seconds = self._limits.task_timeout_s
            raise JobFailedError(
                f"{silent} has sent nothing for {seconds:g} s. A function may not take that long "
                "for one batch: if it has to, raise 'task_timeout_s' of ExecutionLimits"
            )

    # Partitions

    def _find_partitions(self) -> None:
        """Ask for the partitions; a restart waits as long as a start, but may be stopped."""
        if not self._generation:
            self._update_partitions()
            return
        deadline = Deadline.after(self._stream.timeout_s)
        while True:
            try:
                with self._requests.limit("partitions"):
                    self._update_partitions()
            except BrokerUnreachableError:
                if deadline.has_passed or self._stop_requested.wait(_RECEIVE_S):
                    raise
            else:
                return

    def _reconfigure(self, job: ContinuousJob) -> None:
        """Let live tasks read new partitions, and none read deleted ones."""
        if not job.is_complete or not self._requests.are_due("partitions"):
            return
        try:
            with self._requests.limit("partitions"):
                added, deleted = self._update_partitions()
            self._newly_missing(())
        except UnknownTopicError as error:
            self._lose_topics(error)
            return
        except DataLossError:
            raise
        except PysparkKafkaError as error:
            log.warning("The partitions of a continuous query are not known: %s", error)
            return
        for slot, task in job.tasks.items():
            revoked = deleted & set(job.partitions[slot])
            if revoked:
                job.partitions[slot] = [p for p in job.partitions[slot] if p not in revoked]
                offsets = PartitionOffsets(dict.fromkeys(revoked, 0))
                self._channel.send(task, RevokePartitions(offsets))
        if added:
            self._require_newest()
        for slot, partitions in spread(added, job.partitions).items():
            job.partitions[slot] += partitions
            self._assign(job.tasks[slot], partitions)

    def _update_partitions(self) -> tuple[set[TopicPartition], set[TopicPartition]]:
        """Return the partitions that are new, and those that are deleted.

        :raises DataLossError: if one is deleted, or is of a planned batch and no broker returns it
            in time, and data loss is an error.
        """
        known = self._coordinator.offsets
        current = self._stream.plan_input_partitions(known)
        added, deleted = current.keys() - known.keys(), known.keys() - current.keys()
        self._coordinator.add(current.restrict(added))
        self._coordinator.remove(deleted)
        self._lose_unknown()
        return set(added), set(deleted)

    def _lose_unknown(self) -> None:
        """Report as lost the partitions of a planned batch that no broker has returned in time."""
        unknown = sorted(self._coordinator.unknown)
        if not unknown:
            return
        if self._unknown_until is None:
            # The metadata of a broker may be older than the batch.
            self._unknown_until = Deadline.after(self._stream.timeout_s)
        elif self._unknown_until.has_passed:
            loss = data_loss.partitions_deleted(unknown)
            if self._stream.fails_on_data_loss:
                raise loss.as_error()
            self._events.data_lost(loss)
            self._coordinator.give_up_unknown()

    def _lose_topics(self, error: UnknownTopicError) -> None:
        """Fail for deleted topics, or let their tasks wait until they are created again."""
        topics = self._newly_missing(error.topics)
        deleted = [each for each in self._coordinator.offsets if each.topic in topics]
        loss = data_loss.partitions_deleted(deleted)
        if deleted and self._stream.fails_on_data_loss:
            raise loss.as_error() from error
        if topics:
            self._events.data_lost(loss)

    def _newly_missing(self, topics: Iterable[str]) -> frozenset[str]:
        """Return the topics that are newly missing, and log which ones are back."""
        before, self._missing_topics = self._missing_topics, frozenset(topics)
        back = sorted(before - self._missing_topics)
        if back:
            log.warning("Topics of a continuous query exist again: %s", ", ".join(back))
        return self._missing_topics - before

    # Epochs

    def _end_epoch(self, *, is_final: bool = False) -> None:
        self._committer.commit_next(self._coordinator, is_final=is_final)
        last = self._coordinator.last
        if self._requests.are_due("group"):
            with self._requests.limit("group"):
                self._stream.commit(last.offsets)
        self._progress.record(last, str(self._stream), self._latest, is_final=is_final)
        self._catch_ups.check(last.offsets, self._latest)

    def _latest(self) -> PartitionOffsets | None:
        """Return the latest offsets, or ``None`` if they cannot be asked for now."""
        if not self._requests.are_due("latest"):
            return None
        with self._requests.limit("latest"):
            return self._stream.latest_offset()
