"""Places in an epoch at which a driver is killed or held, and an outage of its logs.

They are around what the driver writes into its metadata logs. Other processes arm them by files in
a directory.
"""

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import Final, final

from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.ports.checkpoints import MetadataLog

from .trap import Trap

_HELD_S: Final = 60.0


class EpochPoint(enum.Enum):
    """A step of an epoch."""

    ACKNOWLEDGED = "before its offsets are logged"
    LOGGED = "between its offsets and its commit"
    COMMITTED = "after its commit"


class LogOutage(enum.Enum):
    """How a log fails: some storages write a file, and then lose the answer."""

    REFUSED = "nothing is written"
    UNANSWERED = "what is written is not acknowledged"


@final
class EpochPoints:
    """The points of one driver's process, in files that others can see."""

    def __init__(self, directory: Path) -> None:
        """Take a directory, which is created if it is missing."""
        for name in ("kill", "hold"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        self.kills = Trap(directory / "kill")
        self.holds = Trap(directory / "hold")
        self._outage = directory / "outage"

    def fail_logs(self, outage: LogOutage) -> None:
        """Let all logs fail from now on."""
        self._outage.write_text(outage.name)

    def mend_logs(self) -> None:
        """Let the logs work again."""
        self._outage.unlink(missing_ok=True)

    def reach(self, point: EpochPoint | None) -> None:
        """Be killed or held, if that is armed."""
        if point is not None:
            self.kills.reach(point)
            self.holds.hold(point, _HELD_S)

    def outage(self) -> LogOutage | None:
        """Return how logs fail now."""
        try:
            return LogOutage[self._outage.read_text()]
        except (FileNotFoundError, KeyError):
            return None

    def log_at(self, path: StoragePath) -> MetadataLog:
        """Return the log of a directory, with points around what is written."""
        is_offsets = str(path).endswith("offsets")
        before, after = (
            (EpochPoint.ACKNOWLEDGED, EpochPoint.LOGGED)
            if is_offsets
            else (None, EpochPoint.COMMITTED)
        )
        return TrappedEpochLog(FsspecMetadataLog(path), self, before, after)


@final
class TrappedEpochLog(MetadataLog):
    """Another's log, with points around what is written, which fails during an outage."""

    def __init__(
        self,
        log: MetadataLog,
        points: EpochPoints,
        before: EpochPoint | None,
        after: EpochPoint | None,
    ) -> None:
        self._log = log
        self._points = points
        self._before = before
        self._after = after

    def __str__(self) -> str:
        return str(self._log)

    def add(self, batch_id: int, metadata: bytes) -> bool:
        self._points.reach(self._before)
        self._fail(LogOutage.REFUSED)
        is_added = self._log.add(batch_id, metadata)
        self._fail(LogOutage.UNANSWERED)
        self._points.reach(self._after)
        return is_added

    def get(self, batch_id: int) -> bytes | None:
        self._fail(*LogOutage)
        return self._log.get(batch_id)

    def latest(self) -> tuple[int, bytes] | None:
        self._fail(*LogOutage)
        return self._log.latest()

    def batch_ids(self) -> Sequence[int]:
        self._fail(*LogOutage)
        return self._log.batch_ids()

    def purge(self, threshold: int) -> None:
        self._fail(*LogOutage)
        self._log.purge(threshold)

    def _fail(self, *outages: LogOutage) -> None:
        if self._points.outage() in outages:
            raise MetadataLogError(str(self), "The storage is not available: the soak test says so")
