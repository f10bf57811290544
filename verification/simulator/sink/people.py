"""People who start the query, follow the advice of its errors, and make mistakes."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from pyspark_kafka.application.continuous.errors import UncertainEndError
from pyspark_kafka.domain.checkpoints.entries import BatchState
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import TransactionLostError

from ..engine.decisions import Fired
from ..engine.outcome import ViolationError
from .application import Application
from .calls import REQUEST_TIMEOUT_MS, StorageError
from .checkpoint import Checkpoint, part, value_of
from .continuous import ContinuousApplication
from .faults import Fault
from .kafka import DAY_MS, OPERATOR
from .oracle import OTHER_DRIVER, PARTLY_LOST, Oracle
from .spark import JobFailedError, MicroBatchApplication
from .tool import Moves, OffsetsTool
from .world import LATEST_MS, PREFIX, World

ME: Final = "people"

_MAX_STARTS: Final = 8
_MAX_QUIET_STARTS: Final = 12
_PATIENT_STARTS: Final = 4
"""How often people start a query beside a suspended one, before they end that."""

_MAX_PARTITIONS: Final = 6
_QUERY_IDS: Final = ("0a1b2c3d-0000-4000-8000-000000000001", "0a1b2c3d-0000-4000-8000-000000000002")

CONTINUOUSLY: Final = "tart the continuous query once more"
IN_BATCHES: Final = "Start that query once more, stop it after the batch"
OTHER_OFFSETS: Final = "run 'pyspark-kafka offsets rewrite' with the offsets where"
WRITTEN_OFFSETS: Final = "run 'pyspark-kafka offsets rewrite' with the offsets up to which"
UNTIL_IT_TIMES_OUT: Final = "Wait for 'kafka.transaction.timeout.ms'"
ON_A_COPY: Final = "start the continuous query on it once"


class People:
    """Runs a query until all records are written, first with faults and then without."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self._main = Checkpoint("r", _QUERY_IDS[0], "r", PREFIX)
        self.checkpoints = [self._main]
        self._applications: list[Application] = []
        self._is_continuous = world.settings.begins_continuously
        self._advice: dict[str, bool] = {}
        """The mode in which a checkpoint's query is to be started next, by its tag."""
        self._tried: set[str] = set()
        """Messages whose advice was followed; it is not followed again."""
        world.people = world.scheduler.spawn(ME, self._run)

    def _run(self) -> None:
        for _ in range(_MAX_STARTS):
            if self._run_once(self._main):
                break
            self._pause()
        self._world.decisions.is_quiet = True
        self._world.tell(ME, "end of faults", "", None)
        for application in self._applications:
            if not application.is_suspended:
                application.die()
        for checkpoint in self.checkpoints:
            self._finish(checkpoint)
        self._await(lambda: not any(each.is_at_work for each in self._applications), 31_000)
        self._write_another_batch()
        if self._world.settings.has_continuous or Fault.NEW_CHECKPOINT in self._world.interference:
            # What the former query left open hides records until its time-out.
            self._sleep(self._world.settings.timeout_ms + LATEST_MS + 1_000)
        self._oracle.check_end(self.checkpoints)

    def _write_another_batch(self) -> None:
        """Write a batch without faults, which ends what earlier attempts left open."""
        for partition in self._world.input:
            self._world.add_records(partition, 1)
        for checkpoint in self.checkpoints:
            self._finish(checkpoint)

    # Time

    def _sleep(self, ms: int) -> None:
        """Sleep, also if an application ends meanwhile."""
        scheduler = self._world.scheduler
        until_ms = scheduler.now_ms + ms
        while scheduler.now_ms < until_ms:
            scheduler.sleep(until_ms - scheduler.now_ms)

    def _await(self, is_reached: Callable[[], bool], at_least_ms: int = 0) -> None:
        self._sleep(at_least_ms)
        while not is_reached():
            suspended = [each.suspended_until_ms for each in self._applications]
            self._sleep(max(60_000, *(each - self._world.scheduler.now_ms for each in suspended)))

    # Starts

    def _start(self, checkpoint: Checkpoint) -> Application:
        number, is_continuous = len(self._applications) + 1, self._next_mode(checkpoint)
        made = ContinuousApplication if is_continuous else MicroBatchApplication
        application = made(self._world, number, checkpoint)
        self._applications.append(application)
        how = "continuously" if is_continuous else "in micro-batches"
        self._world.tell(application.name, f"is started {how}", "", None)
        return application

    def _next_mode(self, checkpoint: Checkpoint) -> bool:
        """Return whether a query is to be continuous."""
        decisions = self._world.decisions
        if checkpoint.tag in self._advice:
            return self._advice.pop(checkpoint.tag)
        if not decisions.is_quiet and decisions.has(ME, Fault.CHANGED_MODE, 0.5):
            self._is_continuous = not self._is_continuous
        return self._is_continuous

    def _run_once(self, checkpoint: Checkpoint) -> bool:
        """Run a query until it ends, or seems to be dead; return whether all is written."""
        self._plan_mistakes(checkpoint)
        application = self._start(checkpoint)
        while not application.is_over and not application.is_suspended:
            self._world.scheduler.park()
        if application.is_suspended and not application.is_over:
            self._world.interference.add(Fault.SUSPENDED_DRIVER)
        elif application.error is not None:
            self._follow_advice(application)
        return checkpoint.is_done(self._world.input)

    def _finish(self, checkpoint: Checkpoint) -> None:
        application = None
        for starts in range(_MAX_QUIET_STARTS):
            if checkpoint.is_done(self._world.input) or self._run_once(checkpoint):
                return
            application = self._applications[-1]
            self._sleep(60_000)
            if starts == _PATIENT_STARTS:
                for each in self._applications:
                    each.die()
        raise ViolationError("stuck", str(application and application.error))

    # Mistakes

    def _plan_mistakes(self, checkpoint: Checkpoint) -> None:
        decisions, scheduler = self._world.decisions, self._world.scheduler
        mistakes = (
            (Fault.OPERATOR, self._fence),
            (Fault.ADDED_PARTITION, self._add_partition),
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

    def _add_partition(self, fired: Fired) -> None:
        number = len(self._world.input)
        if number < _MAX_PARTITIONS and not self._world.decisions.is_quiet:
            self._world.add_records(part(number), fired.between(0, 2))
            self._world.tell(ME, "add a partition", number, None)

    def _start_second(self, checkpoint: Checkpoint) -> None:
        if not self._world.decisions.is_quiet:
            self._world.interference.add(Fault.TWO_DRIVERS)
            self._start(checkpoint)

    def _copy(self, checkpoint: Checkpoint) -> None:
        if self._world.decisions.is_quiet or len(self.checkpoints) > 1:
            return
        prefix = None
        if self._world.settings.has_continuous:
            # With another prefix, a query refuses to end what the original has prepared.
            if checkpoint.newest_entry()[1].state is BatchState.PREPARED:
                return
            prefix = f"{PREFIX}-copy"
        self._world.interference.add(Fault.COPIED)
        self.checkpoints.append(checkpoint.copy("c", prefix))
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
        is_new = decisions.has(ME, Fault.NEW_CHECKPOINT, 0.5)
        if is_new and self._main.tag == "r" and not world.settings.is_log_in_checkpoint:
            self._replace_checkpoint()
        if fired := decisions.has(ME, Fault.REWRITTEN, 0.5):
            self._rewrite(fired)
        restored = decisions.has(ME, Fault.RESTORED, 0.5)
        if world.snapshots and restored:
            self._restore(restored)

    def _replace_checkpoint(self) -> None:
        """Begin with a new checkpoint where the former one ended, and keep the sink's log."""
        self._world.interference.add(Fault.NEW_CHECKPOINT)
        former = self._main
        former.last = end = former.done()
        self._main = Checkpoint(
            "n", _QUERY_IDS[1], former.place, PREFIX, end, end, sinks=former.sinks
        )
        self.checkpoints.append(self._main)
        self._world.tell(ME, "replace the checkpoint", f"from {end.to_json()}", None)

    def _restore(self, fired: Fired) -> None:
        snapshots = self._world.snapshots
        oldest = max(0, len(snapshots) - 3)
        snapshot = snapshots[fired.between(oldest, len(snapshots) - 1)]
        with_sinks = fired.between(0, 1) == 1
        self._world.interference.add(Fault.RESTORED)
        self._main.overwrite(snapshot, with_sinks=with_sinks)
        what = f"through {snapshot.planned()}, {'with' if with_sinks else 'without'} the sink's log"
        self._world.tell(ME, "restore the checkpoint", what, None)

    def _rewrite(self, fired: Fired) -> None:
        """Let the query continue elsewhere, or where it was before: once it is stopped."""
        self._sleep(61_000)
        if any(each.is_at_work for each in self._applications):
            return
        targets = None
        if self._main.backups.latest() is None or fired.between(0, 2):
            ends = self._world.input.items()
            targets = PartitionOffsets({each: fired.between(0, end) for each, end in ends})
        self._use_tool(targets)

    def _use_tool(self, targets: PartitionOffsets | None) -> None:
        """Rewrite offsets, and expect records that are read again or left out."""
        moves = Moves(self._world, self._main)
        self._run_tool(targets)
        moves.note()

    def _run_tool(self, targets: PartitionOffsets | None) -> None:
        """Rewrite offsets: again, if the command is killed or fails."""
        self._world.interference.add(Fault.REWRITTEN)
        for _ in range(_MAX_STARTS):
            tool = OffsetsTool(self._world, len(self._applications) + 1, self._main, targets)
            self._applications.append(tool)
            what = "undo" if targets is None else f"rewrite to {targets.to_json()}"
            self._world.tell(ME, f"offsets {what}", "", None)
            self._await(lambda tool=tool: not tool.is_at_work)  # type: ignore[misc]
            if not tool.is_dead and tool.error is None:
                break

    # Advice

    def _follow_advice(self, application: Application) -> None:
        error, checkpoint = application.error, application.checkpoint
        if isinstance(error, JobFailedError):
            error = error.cause
        if isinstance(error, TransactionLostError):
            if PARTLY_LOST in error.message or error.may_be_committed:
                self._complete_by_hand(checkpoint, error.message)
        elif isinstance(error, UncertainEndError):
            self._advice[checkpoint.tag] = True
        elif isinstance(error, MetadataLogError) and not isinstance(error, StorageError):
            self._follow(error.message, checkpoint)

    def _follow(self, text: str, checkpoint: Checkpoint) -> None:
        is_shared = any(not each.is_over for each in self._applications)
        if CONTINUOUSLY in text or IN_BATCHES in text or ON_A_COPY in text:
            self._advice[checkpoint.tag] = IN_BATCHES not in text
        elif WRITTEN_OFFSETS in text and not is_shared:
            self._run_tool(self._written(checkpoint))
            self._delete_log(checkpoint)
        elif self._may_help(OTHER_OFFSETS, text) and Fault.REWRITTEN in self._world.interference:
            self._tried.add(text)
            self._use_tool(checkpoint.done())
        elif OTHER_DRIVER not in text and "Multiple streaming jobs" not in text and not is_shared:
            self._delete_log(checkpoint)

    def _may_help(self, advice: str, text: str) -> bool:
        """Return whether a message has an advice that was not followed in vain before."""
        return advice in text and text not in self._tried

    def _written(self, checkpoint: Checkpoint) -> PartitionOffsets:
        """Return up to where Kafka has all records of a query."""

        def is_missing(partition: TopicPartition, offset: int) -> bool:
            value = value_of(checkpoint.tag, partition.partition, offset)
            return not self._world.is_visible(value)

        return PartitionOffsets(
            {
                each: next((offset for offset in range(end) if is_missing(each, offset)), end)
                for each, end in self._world.input.items()
            }
        )

    def _complete_by_hand(self, checkpoint: Checkpoint, advice: str) -> None:
        """Write the records of a batch that are missing, and log that it is committed."""
        self._sleep(REQUEST_TIMEOUT_MS)  # a request may still be on its way
        if UNTIL_IT_TIMES_OUT in advice:
            self._sleep(self._world.settings.timeout_ms + LATEST_MS)
        number, entry = checkpoint.newest_entry()
        if entry.state is not BatchState.PREPARED:
            return
        seen = self._world.kafka.visible
        values = checkpoint.values(entry.batch_id)
        missing = {each for each in values if not seen[each]}
        if Fault.REWRITTEN in self._world.interference:
            # What was visible before the offsets were rewritten does not count.
            lost_again = self._oracle.lost(entry)
            missing |= {each for one in lost_again for each in self._world.kafka.records[one]}
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
