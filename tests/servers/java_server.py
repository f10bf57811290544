"""Servers in Java that run for a block."""

import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark_kafka.brokers.errors import BrokerStartError
from pyspark_kafka.brokers.java import JavaProcess
from pyspark_kafka.ports.clock import Deadline
from tests.slowness import bound_s

SMALL_JVM: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
)
_START_S: Final = bound_s(120)
_POLL_S: Final = 0.1


@contextmanager
def running(
    server: str,
    commands: Mapping[str, Sequence[str]],
    directory: Path,
    is_ready: Callable[[], bool],
) -> Iterator[None]:
    """Run the processes of a server, by the names of their logs in a directory, until it is ready.

    They end with the block, and with this process, even when it is killed.
    """
    processes: list[JavaProcess] = []
    try:
        for name, command in commands.items():
            processes.append(JavaProcess(command, directory, directory / f"{name}.log"))
        deadline = Deadline.after(_START_S)
        while not is_ready():
            for process in processes:
                if not process.running:
                    raise BrokerStartError(f"{server} ended by itself", process.log)
            if deadline.has_passed:
                what = f"{server} was not ready within {_START_S:g} s"
                raise BrokerStartError(what, processes[0].log)
            time.sleep(_POLL_S)
        yield
    finally:
        for process in processes:
            process.kill()


def listens(port: int) -> bool:
    """Whether something listens on a port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
