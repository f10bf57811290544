"""Write batches with several threads at once, and print those that this process won, as JSON.

The arguments are a URL, a name for this process, the numbers of threads and of batches; the
storage options come as the first line of the standard input, and the second one starts the race.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath


def main(url: str, name: str, threads: int, batches: int) -> None:
    """Race, once a line of input asks for it."""
    log = FsspecMetadataLog(StoragePath(url, sys.stdin.readline()))
    log.latest()  # connects
    together = Barrier(threads)

    def race(thread: int) -> list[tuple[int, str]]:
        won = []
        for batch_id in range(batches):
            metadata = f"{name}-{thread}"
            together.wait()
            if log.add(batch_id, metadata.encode()):
                won.append((batch_id, metadata))
        return won

    print("ready", flush=True)
    sys.stdin.readline()
    with ThreadPoolExecutor(threads) as pool:
        print(json.dumps([one for won in pool.map(race, range(threads)) for one in won]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
