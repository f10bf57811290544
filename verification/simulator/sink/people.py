"""People who start the query, follow the advice of its errors, and make mistakes."""

from dataclasses import replace
from functools import partial
from typing import Final

from pyspark_kafka.domain.checkpoints.entries import BatchState
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.writing.errors import TransactionLostError

from ..engine.decisions import Fired
from ..engine.outcome import ViolationError
from .checkpoint import Checkpoint
from .faults import Fault
from .kafka import DAY_MS, OPERATOR
from .oracle import OTHER_DRIVER, PARTLY_LOST, Oracle
from .ports import REQUEST_TIMEOUT_MS, StorageError
from .spark import Application, JobFailedError
from .world import World

ME: Final = "people"

_MAX_STARTS: Final = 8
_MAX_QUIET_STARTS: Final = 12
_QUERY_IDS: Final = ("0a1b2c3d-0000-4000-8000-000000000001", "0a1b2c3d-0000-4000-8000-000000000002")


class People:
    """Runs a query until all records are written, first with faults and then without."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self._main = Checkpoint("r", _QUERY_IDS[0], "r")
        self.checkpoints = [self._main]
        self._applications: list[Application] = []
        world.people = world.scheduler.spawn(ME, self._run)

    def _run(self) -> None:
        for _ in range(_MAX_STARTS):
            if self._run_once(self._main):
                break
            self._pause()
        self._world.decisions.is_quiet = True
        self._world.tell(ME, "end of faults", "", None)
        for application in self._applications:
            application.die()
        for checkpoint in self.checkpoints:
            self._finish(checkpoint)
        self._world.scheduler.sleep(31_000)
        self._write_another_batch()
        if Fault.NEW_CHECKPOINT in self._world.interference:
            # What the former query left open hides records until its time-out.
            self._world.scheduler.sleep(self._world.settings.timeout_ms + 11_000)
        self._oracle.check_end(self.checkpoints)

    def _write_another_batch(self) -> None:
        """Write a batch without faults, which ends what earlier attempts left open."""
        while any(each.is_at_work for each in self._applications):
            self._world.scheduler.sleep(60_000)
        self._world.records += self._world.settings.partitions
        for checkpoint in self.checkpoints:
            self._finish(checkpoint)

    def _start(self, checkpoint: Checkpoint) -> Application:
        application = Application(self._world, len(self._applications) + 1, checkpoint)
        self._applications.append(application)
        self._world.tell(f"driver {len(self._applications)}", "is started", "", None)
        return application

    def _run_once(self, checkpoint: Checkpoint) -> bool:
        self._plan_mistakes(checkpoint)
        application = self._start(checkpoint)
        while not application.is_over:
            self._world.scheduler.park()
        if application.error is not None:
            self._follow_advice(application)
        return application.error is None and not application.is_dead

    def _finish(self, checkpoint: Checkpoint) -> None:
        application = None
        for _ in range(_MAX_QUIET_STARTS):
            if checkpoint.last < self._world.records or self._run_once(checkpoint):
                return
            application = self._applications[-1]
            self._world.scheduler.sleep(60_000)
        raise ViolationError("stuck", str(application and application.error))

    def _plan_mistakes(self, checkpoint: Checkpoint) -> None:
        decisions, scheduler = self._world.decisions, self._world.scheduler
        mistakes = (
            (Fault.OPERATOR, self._fence),
            (Fault.TWO_DRIVERS, lambda _: self._start_second(checkpoint)),
            (Fault.COPIED, lambda _: self._copy(checkpoint)),
            (Fault.DELETED_LOG, lambda _: self._delete_log(checkpoint)),
        )
        for kind, action in mistakes:
            if fired := decisions.has(ME, kind, 0.5):
                delay_ms = fired.between(1, 4 * self._world.settings.work_ms)
                scheduler.at(delay_ms, partial(action, fired))

    def _fence(self, fired: Fired) -> None:
        kafka = self._world.kafka
        if names := sorted(kafka.names):
            name = names[fired.between(0, len(names) - 1)]
            self._world.tell(OPERATOR, "begin", name, kafka.begin(name, OPERATOR))

    def _start_second(self, checkpoint: Checkpoint) -> None:
        if not self._world.decisions.is_quiet:
            self._world.interference.add(Fault.TWO_DRIVERS)
            self._start(checkpoint)

    def _copy(self, checkpoint: Checkpoint) -> None:
        if self._world.decisions.is_quiet or len(self.checkpoints) > 1:
            return
        self._world.interference.add(Fault.COPIED)
        self.checkpoints.append(checkpoint.copy("c"))
        self._start(self.checkpoints[-1])

    def _delete_log(self, checkpoint: Checkpoint) -> None:
        self._world.interference.add(Fault.DELETED_LOG)
        checkpoint.delete_sink_log()
        self._world.tell(ME, "delete the sink's log", "", None)

    def _pause(self) -> None:
        """Do something before the next start, or nothing for a while."""
        world, decisions = self._world, self._world.decisions
        pause_ms = decisions.between(ME, 1_000, 30_000)
        if fired := decisions.has(ME, Fault.LONG_PAUSE, 0.5):
            pause_ms = (2 * world.settings.timeout_ms, 8 * DAY_MS)[fired.between(0, 1)]
        world.scheduler.sleep(pause_ms)
        world.kafka.forget()
        is_new = decisions.has(ME, Fault.NEW_CHECKPOINT, 0.5)
        if is_new and self._main.tag == "r" and not world.settings.is_log_in_checkpoint:
            self._replace_checkpoint()
        restored = decisions.has(ME, Fault.RESTORED, 0.5)
        if world.snapshots and restored:
            self._restore(restored)

    def _replace_checkpoint(self) -> None:
        """Begin with a new checkpoint where the former one ended, and keep the sink's log."""
        self._world.interference.add(Fault.NEW_CHECKPOINT)
        planned = self._main.planned()
        end = 0
        if planned is not None:
            end = planned.end if self._main.is_committed(planned) else planned.start
        self._main.last = end
        self._main = Checkpoint("n", _QUERY_IDS[1], self._main.place, end, sinks=self._main.sinks)
        self.checkpoints.append(self._main)
        self._world.tell(ME, "replace the checkpoint", f"from record {end}", None)

    def _restore(self, fired: Fired) -> None:
        snapshots = self._world.snapshots
        oldest = max(0, len(snapshots) - 3)
        snapshot = snapshots[fired.between(oldest, len(snapshots) - 1)]
        with_sinks = fired.between(0, 1) == 1
        self._world.interference.add(Fault.RESTORED)
        self._main.overwrite(snapshot, with_sinks=with_sinks)
        what = f"through {snapshot.planned()}, {'with' if with_sinks else 'without'} the sink's log"
        self._world.tell(ME, "restore the checkpoint", what, None)

    def _follow_advice(self, application: Application) -> None:
        error, checkpoint = application.error, application.checkpoint
        if isinstance(error, JobFailedError):
            error = error.cause
        if isinstance(error, TransactionLostError):
            if PARTLY_LOST in error.message or error.may_be_committed:
                self._complete_by_hand(checkpoint)
        elif isinstance(error, MetadataLogError) and not isinstance(error, StorageError):
            is_shared = any(not each.is_over for each in self._applications)
            if OTHER_DRIVER not in error.message and not is_shared:
                self._delete_log(checkpoint)

    def _complete_by_hand(self, checkpoint: Checkpoint) -> None:
        """Write the records of a batch that are missing, and log that it is committed."""
        scheduler = self._world.scheduler
        until_ms = scheduler.now_ms + REQUEST_TIMEOUT_MS  # a request may still be on its way
        while scheduler.now_ms < until_ms:  # an application that ends wakes people
            scheduler.sleep(until_ms - scheduler.now_ms)
        number, entry = checkpoint.newest_entry()
        if entry.state is not BatchState.PREPARED:
            return
        seen = self._world.kafka.visible()
        values = checkpoint.values(entry.batch_id)
        missing = {each for each in values if not seen[each]}
        if missing == set(values):
            state = BatchState.DROPPED
        else:
            state = BatchState.COMMITTED
            lost = self._oracle.lost(entry)
            is_written_again = bool(self._world.interference)
            if not is_written_again and missing != {
                each for one in lost for each in self._world.kafka.records.get(one, ())
            }:
                raise ViolationError("untrue: a part is missing", f"{sorted(missing)}, not {lost}")
            self._world.written_by_people |= missing
        self._oracle.by_hand.update(entry.transactions)
        checkpoint.sinks.replace(number, replace(entry, state=state).to_bytes())
        self._world.tell(ME, "log by hand", f"{state.value} {number}", f"write {sorted(missing)}")
