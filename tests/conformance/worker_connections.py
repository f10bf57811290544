"""The connections of Spark's Python workers to the run's broker, as Linux lists them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from pyspark_kafka.brokers import KafkaCluster

Connections = frozenset[tuple[int, int]]

ESTABLISHED: Final = "01"


def worker_connections(spark: SparkSession, kafka: KafkaCluster) -> Callable[[], Connections]:
    """Return what lists the connections: each process's id with the local port."""
    jvm: Any = spark._jvm
    root = int(jvm.java.lang.ProcessHandle.current().pid())
    ports = {int(address.rpartition(":")[2]) for address in kafka.bootstrap_servers.split(",")}
    return lambda: connections(root, ports)


def connections(root: int, ports: set[int]) -> Connections:
    """Return the connections of a process's descendants to servers at some ports."""
    inodes = dict(_established(ports))
    return frozenset(
        (process, inodes[inode])
        for process in _descendants(root)
        for inode in _sockets(process)
        if inode in inodes
    )


def _established(ports: set[int]) -> Iterator[tuple[str, int]]:
    """Yield the inode and the local port of each connection."""
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text().splitlines()[1:]:
            _, local, remote, state, *_, inode = line.split()[:10]
            if state == ESTABLISHED and int(remote.rpartition(":")[2], 16) in ports:
                yield inode, int(local.rpartition(":")[2], 16)


def _descendants(root: int) -> set[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            # The name before the state and the parent may have blanks and parentheses.
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = {root}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


def _sockets(process: int) -> Iterator[str]:
    """Yield the inodes of a process's sockets, if it is still there."""
    try:
        entries = list(Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return
    for entry in entries:
        try:
            target = str(entry.readlink())
        except OSError:
            continue
        if target.startswith("socket:["):
            yield target.removeprefix("socket:[").removesuffix("]")
