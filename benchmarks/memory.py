"""The peak memory of readers, for a small and a large range."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .bench import CLIENTS
from .fresh_process import on_all_cores
from .one_core_readers import READERS
from .plan import GB, MB
from .results import MEGABYTES, Comparison, Samples, Section
from .topics import KB10_PADDED, Topic

if TYPE_CHECKING:
    from .bench import Bench

PROCESSES: Final = Path("/proc")
PEAK: Final = re.compile(r"VmHWM:\s*(\d+) kB")

ABOUT: Final = (
    f"The peak resident memory (`VmHWM`) of a fresh process that reads one range with a "
    f"`RecordReader`, including Python, Arrow and the client. The values have "
    f"{KB10_PADDED.value_bytes:,} B and are compressed with {KB10_PADDED.compression}."
)


def measure_memory(bench: Bench) -> Section:
    """Measure each client's memory for a range of each size."""
    return Section(
        "memory",
        "Peak memory",
        ABOUT,
        MEGABYTES,
        tuple(_compare(bench, size) for size in bench.plan.memory_bytes),
    )


def _compare(bench: Bench, size: int) -> Comparison:
    topic = bench.topics.of_bytes(KB10_PADDED, 1, size)
    servers = bench.kafka.bootstrap_servers
    samples = tuple(
        Samples(client, (on_all_cores(peak_megabytes, servers, topic, client),))
        for client in CLIENTS
    )
    return Comparison(f"a range of {size_text(size)}", samples)


def peak_megabytes(bootstrap_servers: str, topic: Topic, client: str) -> float:
    """Return this process's peak memory after reading a topic."""
    with READERS[client](bootstrap_servers) as read:
        records = sum(count for one in topic.ranges for count in read(one))
    if records != topic.records:
        raise RuntimeError(f"{client} read {records} of {topic.records} records")
    return own_peak()


def own_peak() -> float:
    """Return the peak memory of this process in megabytes."""
    return peak_of(PROCESSES / "self")


def peak_of(process: Path) -> float:
    """Return the peak memory of a process in megabytes, by its directory in ``/proc``."""
    status = process / "status"
    found = PEAK.search(status.read_text())
    if found is None:
        raise RuntimeError(f"{status} has no VmHWM")
    return int(found[1]) * 1024 / MB


def processes_of(module: str) -> list[Path]:
    """Return the directories of the processes that run a Python module."""
    return [path.parent for path in PROCESSES.glob("[0-9]*/cmdline") if module in path.read_text()]


def size_text(size: int) -> str:
    """Return a number of bytes as text."""
    return f"{size // GB} GB" if size >= GB else f"{size // MB} MB"
