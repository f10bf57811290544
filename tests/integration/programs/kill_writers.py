"""Kill one writer of a log after the other, each at a random moment.

The arguments are a URL, how many to kill, and after how many seconds at most.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath

_BATCHES = 2


def metadata_of(batch_id: int) -> bytes:
    """Return the content of a batch, large enough to be interrupted while it is written."""
    return b"%d," % batch_id * 20_000


def write_on(url: str) -> None:
    log = FsspecMetadataLog(StoragePath(url))
    latest = log.latest()
    batch_id = latest[0] + 1 if latest else 0
    while True:
        log.add(batch_id, metadata_of(batch_id))
        batch_id += 1


def kill_one(url: str, seconds: float) -> None:
    writer = os.fork()
    if writer == 0:
        write_on(url)
    time.sleep(random.uniform(0, seconds))  # noqa: S311 - no secret
    os.kill(writer, signal.SIGKILL)
    _, status = os.waitpid(writer, 0)
    if not os.WIFSIGNALED(status):
        sys.exit("a writer ended by itself")


def main(url: str, kills: int, seconds: float) -> None:
    """Kill writers, and on a slow machine more of them, with more time, until batches are there."""
    # All that a writer needs is loaded here: a fork is there at once.
    log = FsspecMetadataLog(StoragePath(url))
    log.latest()
    killed = 0
    while killed < kills or len(log.batch_ids()) < _BATCHES:
        kill_one(url, seconds * (1 + killed // kills))
        killed += 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
