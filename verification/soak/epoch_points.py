"""Places in an epoch at which a driver is killed or held, and an outage of its logs.

They are around what the driver writes into its metadata logs. Other processes arm them by files in
a directory.
"""

import enum
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import MetadataLogError

from .surrounded import Surrounded
from .trap import Trap


class EpochPoint(enum.Enum):
    """A step of an epoch."""

    ACKNOWLEDGED = "before its offsets are logged"
    LOGGED = "between its offsets and its commit"
    COMMITTED = "after its commit"


class LogOutage(enum.Enum):
    """How a log fails: some storages write a file, and then lose the answer."""

    REFUSED = "nothing is written"
    UNANSWERED = "what is written is not acknowledged"


class EpochPoints:
    """The points of one driver's process, in files that others can see."""

    def __init__(self, directory: Path) -> None:
        """Take a directory, which is created if it is missing."""
        directory.mkdir(parents=True, exist_ok=True)
        self.trap = Trap(directory)
        self._outage = directory / "outage"

    def fail_logs(self, outage: LogOutage) -> None:
        self._outage.write_text(outage.name)

    def mend_logs(self) -> None:
        self._outage.unlink(missing_ok=True)

    def log_at(self, path: StoragePath) -> Any:
        """Return the log of a directory, with points around what is written."""
        is_offsets = str(path).endswith("offsets")
        after = EpochPoint.LOGGED if is_offsets else EpochPoint.COMMITTED

        @contextmanager
        def around(call: str, *_: object) -> Iterator[None]:
            if call != "add":
                self._fail(path, *LogOutage)
                yield
                return
            if is_offsets:
                self.trap.reach(EpochPoint.ACKNOWLEDGED)
            self._fail(path, LogOutage.REFUSED)
            yield
            self._fail(path, LogOutage.UNANSWERED)
            self.trap.reach(after)

        return Surrounded(FsspecMetadataLog(path), around)

    def _fail(self, path: StoragePath, *outages: LogOutage) -> None:
        with suppress(FileNotFoundError):
            if self._outage.read_text() not in {outage.name for outage in outages}:
                return
            raise MetadataLogError(str(path), "The storage is not available: the soak test says so")
