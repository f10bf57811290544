"""The epochs of a continuous query, in the logs of Spark's checkpoints."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Final, final

from ...domain.checkpoints.checkpoint_log import (
    COMMITTED,
    CONTINUOUS_GROUP,
    read_batch_conf,
    write_batch_end,
)
from ...domain.continuous.epochs import Epoch
from ...domain.errors import PysparkKafkaError
from ...domain.partition_offsets import PartitionOffsets
from ...ports.clock import epoch_ms
from ..checkpoints.logs import CheckpointLogs, ConcurrentUpdateError, parsing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...domain.continuous.epochs import EpochCoordinator
    from ...ports.checkpoints import MetadataLog


@final
@dataclass(slots=True, eq=False)
class _CatchUp:
    """Waits until the offsets that are the latest at its first look are processed."""

    done: threading.Event = field(default_factory=threading.Event)
    target: PartitionOffsets | None = None

    def is_reached(self, offsets: PartitionOffsets) -> bool:
        return self.target is not None and all(
            offsets.get(partition, 0) >= offset for partition, offset in self.target.items()
        )

    def look(
        self, offsets: PartitionOffsets, latest: Callable[[], PartitionOffsets | None]
    ) -> None:
        """Find out what to wait for; partitions that were deleted since are not waited for."""
        if self.target is None:
            self.target = latest()
        elif self.target.keys() - offsets.keys() and (found := latest()) is not None:
            self.target = self.target.restrict(found)


log = logging.getLogger("pyspark_kafka")


@final
class CatchUps:
    """The threads that wait in ``processAllAvailable``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_CatchUp] = []
        self._is_uninformed = False

    def add(self) -> threading.Event:
        """Return an event that is set once all records that exist now are processed and logged."""
        added = _CatchUp()
        with self._lock:
            self._waiting.append(added)
        return added.done

    def check(
        self, offsets: PartitionOffsets, latest: Callable[[], PartitionOffsets | None]
    ) -> None:
        """Set the events whose records end before these committed offsets.

        While no broker returns the latest offsets, the threads keep waiting.
        """
        with self._lock:
            waiting = list(self._waiting)
        ask_once = cache(partial(self._ask, latest))
        for each in waiting:
            each.look(offsets, ask_once)
            if each.is_reached(offsets):
                each.done.set()
                with self._lock:
                    self._waiting.remove(each)

    def _ask(self, latest: Callable[[], PartitionOffsets | None]) -> PartitionOffsets | None:
        """Return the latest offsets, and log the first failure and the next success."""
        try:
            found = latest()
        except PysparkKafkaError as error:
            if not self._is_uninformed:
                log.warning(
                    "processAllAvailable waits until the latest offsets are known: %s", error
                )
            self._is_uninformed = True
            return None
        if self._is_uninformed and found is not None:
            self._is_uninformed = False
            log.warning("The latest offsets are known again, and processAllAvailable continues")
        return found


RUN_ID: Final = "pyspark_kafka.continuous.runId"
"""The setting in an epoch's file that identifies its writer."""

EPOCHS_TO_RETAIN: Final = 100
"""The default of ``spark.sql.streaming.minBatchesToRetain``."""

_LONG_MS: Final = 5_000
"""The time in which no other query writes as many epochs or batches as are retained."""

_PURGE_EVERY: Final = 20
"""Purging lists the directory, which is slow on object stores."""


@final
@dataclass(frozen=True, slots=True)
class LoggedEpochs:
    """The last committed epoch; and a batch that a micro-batch query planned and did not finish."""

    last: Epoch | None
    planned: Epoch | None


@final
class EpochLog:
    """Writes the offsets of an epoch to one log, and then its number to the other.

    A file that exists already was written by this run, whose first attempt seemed to fail; or by
    another query that runs with the same checkpoint. The run id in the file shows which.
    """

    def __init__(
        self,
        offset_log: MetadataLog,
        commit_log: MetadataLog,
        run_id: str,
        group_id: str | None = None,
    ) -> None:
        """Take the id of this run, and with exactly-once delivery the query's group."""
        self._logs = CheckpointLogs(offset_log, commit_log)
        self._run_id = run_id
        self._conf = {RUN_ID: run_id}
        if group_id is not None:
            self._conf[CONTINUOUS_GROUP] = group_id
        self._is_uncertain = False
        self._newest_ms = 0
        """When this run has last seen that no other query was newer."""

    def recover(self) -> LoggedEpochs:
        """Return where the last run ended.

        An epoch that it logged and did not commit is committed now: all of its output was
        acknowledged before.

        :raises MetadataLogError: if the logs cannot be read, or do not belong together.
        """
        self._newest_ms = epoch_ms()
        number, done = self._logs.last()
        if number > done and RUN_ID in self._conf_of(number):
            self._logs.commits.add(number, COMMITTED)
            done = number
        return LoggedEpochs(
            self._epoch(done) if done >= 0 else None, self._epoch(number) if number > done else None
        )

    def require_newest(self, number: int) -> None:
        """Check that no other query has logged a batch or an epoch after this one.

        This run may have logged one and failed to commit it.

        :raises ConcurrentUpdateError: if one has.
        :raises MetadataLogError: if the log cannot be read.
        """
        newest = self._logs.offsets.latest()
        if newest is not None and newest[0] > number and not self._is_own(newest[1]):
            raise ConcurrentUpdateError(self._logs.offsets, newest[0])

    def add(self, epoch: Epoch) -> Epoch:
        """Log and commit an epoch, and return it as it is in the log.

        May be called again after it has raised; an earlier attempt may have reached the storage.

        :raises ConcurrentUpdateError: if another query writes to the log.
        :raises MetadataLogError: if the log cannot be written.
        """
        began_ms = epoch_ms()
        content = write_batch_end(epoch.offsets, began_ms, self._conf)
        if not self._logs.offsets.add(epoch.number, content):
            if self._conf_of(epoch.number).get(RUN_ID) != self._run_id:
                raise ConcurrentUpdateError(self._logs.offsets, epoch.number)
            epoch = self._epoch(epoch.number)
        # Only the run that logged the epoch commits it, so it may be committed already.
        self._logs.commits.add(epoch.number, COMMITTED)
        self._require_newest_after_long(epoch.number)
        self._newest_ms = began_ms
        if epoch.number % _PURGE_EVERY == 0:
            self._logs.purge(epoch.number + 1 - EPOCHS_TO_RETAIN)
        return epoch

    def commit_planned(self, epoch: Epoch) -> None:
        """Commit a batch that a micro-batch query planned; raises as ``add`` does."""
        was_uncertain, self._is_uncertain = self._is_uncertain, True
        was_first = self._logs.commits.add(epoch.number, COMMITTED)
        if not was_first and not was_uncertain:
            raise ConcurrentUpdateError(self._logs.commits, epoch.number)
        self._require_newest_after_long(epoch.number)
        self._is_uncertain = False

    def _require_newest_after_long(self, number: int) -> None:
        """Check a number that was free: others may have written so many that it was purged."""
        if epoch_ms() - self._newest_ms > _LONG_MS:
            self.require_newest(number)

    def _epoch(self, number: int) -> Epoch:
        return Epoch(number, self._logs.end(number))

    def _is_own(self, content: bytes) -> bool:
        # A malformed file is not of this run.
        with suppress(ValueError):
            return read_batch_conf(content).get(RUN_ID) == self._run_id
        return False

    def _conf_of(self, number: int) -> Mapping[str, str]:
        with parsing(self._logs.offsets):
            return read_batch_conf(self._logs.offsets.get(number) or b"")


@final
class EpochCommitter:
    """Writes epochs to the log, and tries those again that could not be written."""

    def __init__(self, epoch_log: EpochLog, max_outage_s: float) -> None:
        self._log = epoch_log
        self._max_outage_s = max_outage_s
        self._failing_since: float | None = None

    def commit_next(self, coordinator: EpochCoordinator, *, is_final: bool) -> None:
        """Commit the next epoch, if there is one; at the end all, which must not fail.

        Another follows a planned batch that tasks have read past, and an epoch that was logged
        before and could not be committed then.

        :raises ConcurrentUpdateError: if another query writes to the log.
        :raises MetadataLogError: if the storage has failed for too long.
        """
        epoch = coordinator.next_epoch()
        while epoch is not None:
            try:
                self.commit(coordinator, epoch)
            except PysparkKafkaError as error:
                if is_final or not error.is_retriable or self._has_failed_for_too_long(error):
                    raise
                return
            self._failing_since = None
            epoch = coordinator.next_epoch() if is_final else None

    def commit(self, coordinator: EpochCoordinator, epoch: Epoch) -> None:
        """Commit an epoch; raise as ``EpochLog``."""
        if epoch == coordinator.planned:
            self._log.commit_planned(epoch)
        else:
            epoch = self._log.add(epoch)
        coordinator.committed(epoch)

    def _has_failed_for_too_long(self, error: PysparkKafkaError) -> bool:
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
            log.warning("An epoch could not be logged, and is tried again: %s", error)
        return now - self._failing_since > self._max_outage_s
