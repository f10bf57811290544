"""Committing epochs while the log's storage may fail."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, final

from ...domain.errors import MetadataLogError
from ..checkpoints.batch_files import ConcurrentUpdateError

if TYPE_CHECKING:
    from ...domain.continuous.epoch_coordinator import Epoch, EpochCoordinator
    from .epoch_log import EpochLog
    from .stream import KafkaContinuousStream

log = logging.getLogger("pyspark_kafka")


@final
class EpochCommitter:
    """Writes epochs to the log, and tries those again that could not be written."""

    def __init__(
        self, epoch_log: EpochLog, stream: KafkaContinuousStream, max_outage_s: float
    ) -> None:
        self._log = epoch_log
        self._stream = stream
        self._max_outage_s = max_outage_s
        self._failing_since: float | None = None

    def commit_next(self, coordinator: EpochCoordinator, *, is_final: bool) -> None:
        """Commit the next epoch, if there is one; the final one must not fail.

        :raises ConcurrentUpdateError: if another query writes to the log.
        :raises MetadataLogError: if the storage has failed for too long.
        """
        epoch = coordinator.next_epoch()
        if epoch is None:
            return
        try:
            self.commit(coordinator, epoch)
        except ConcurrentUpdateError:
            raise
        except MetadataLogError as error:
            if is_final or self._has_failed_for_too_long(error):
                raise
        else:
            self._failing_since = None

    def commit(self, coordinator: EpochCoordinator, epoch: Epoch) -> None:
        """Commit an epoch; raise as ``EpochLog``."""
        if epoch == coordinator.planned:
            self._log.commit_planned(epoch)
        else:
            epoch = self._log.add(epoch)
        coordinator.committed(epoch)
        self._stream.commit(epoch.offsets)

    def _has_failed_for_too_long(self, error: MetadataLogError) -> bool:
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
            log.warning("An epoch could not be logged, and is tried again: %s", error)
        return now - self._failing_since > self._max_outage_s
