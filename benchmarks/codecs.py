"""Reads of each codec by one process: their speed, and the page faults that they cause."""

from __future__ import annotations

import itertools
import resource
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, final

from .bench import CLIENTS
from .fresh_process import on_all_cores
from .memory import size_text
from .one_core_readers import READERS
from .plan import MB
from .results import PAGE_FAULTS, RECORDS_PER_SECOND, Comparison, Samples, Section
from .rounds import run_rounds
from .topics import Shape
from .values import json_events, short_json_event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from .bench import Bench
    from .topics import Topic

    Readings: TypeAlias = "Mapping[str, Sequence[Reading]]"
    """The counted readings of a shape, by client."""

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
SHAPES: Final = tuple(
    Shape(f"{size} JSON, {codec}", value_bytes, make_value, codec)
    for size, value_bytes, make_value in (
        ("100 B", 100, short_json_event),
        ("1 kB", 1_000, json_events),
        ("10 kB", 10_000, json_events),
    )
    for codec in CODECS
)
WARM_UP_BATCHES: Final = 2
FAULTS_PER: Final = 100 * MB

PEER: Final = "confluent"


@final
@dataclass(frozen=True, slots=True)
class Reading:
    """A read of a topic."""

    records: int
    seconds: float
    page_faults: int


def measure_codecs(bench: Bench) -> tuple[Section, Section]:
    """Compare the clients for every size of values and codec, each read in a new process."""
    found = {shape: _readings(bench, shape) for shape in SHAPES}
    return speed_section(found, bench.plan.codec_bytes), fault_section(found)


def _readings(bench: Bench, shape: Shape) -> Readings:
    servers = bench.kafka.bootstrap_servers
    topic = bench.topics.of_bytes(shape, 1, bench.plan.codec_bytes)
    runs = {client: partial(on_all_cores, read, client, servers, topic) for client in CLIENTS}
    return run_rounds(runs, bench.plan)


def read(client: str, bootstrap_servers: str, topic: Topic) -> Reading:
    """Read a topic by a connected and warm reader."""
    (whole,) = topic.ranges
    with READERS[client](bootstrap_servers) as counts_of:
        for _ in itertools.islice(counts_of(whole), WARM_UP_BATCHES):
            pass
        faults, began = _page_faults(), time.perf_counter()
        records = sum(counts_of(whole))
        return Reading(records, time.perf_counter() - began, _page_faults() - faults)


def _page_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def speed_section(found: Mapping[Shape, Readings], value_bytes: int) -> Section:
    """Return the records per second of each client, and its ratio to ``confluent``."""
    about = (
        f"A fresh process reads {size_text(value_bytes)} of values from one partition into Arrow, "
        "with a `RecordReader` and without headers. It has all cores, because `confluent` "
        "decompresses in threads of librdkafka. Values of 100 B are padded with blanks; the others "
        "are arrays of events."
    )
    comparisons = tuple(
        _comparison(shape, readings, lambda one: one.records / one.seconds, shape.value_bytes)
        for shape, readings in found.items()
    )
    return Section(
        "codecs", "Codecs, no Spark", about, RECORDS_PER_SECOND, comparisons, peers=(PEER,)
    )


def fault_section(found: Mapping[Shape, Readings]) -> Section:
    """Return the page faults of each client per 100 MB of values."""
    about = (
        "The minor page faults of the same reads per 100 MB of values, without those of connecting "
        f"and of the first {WARM_UP_BATCHES} batches. In each, the system clears a page of memory "
        "for the process."
    )
    comparisons = tuple(
        _comparison(shape, readings, partial(_faults_of, shape))
        for shape, readings in found.items()
    )
    return Section("codec-faults", "Page faults of codecs", about, PAGE_FAULTS, comparisons)


def _faults_of(shape: Shape, reading: Reading) -> float:
    return reading.page_faults * FAULTS_PER / (reading.records * shape.value_bytes)


def _comparison(
    shape: Shape,
    readings: Readings,
    figure: Callable[[Reading], float],
    bytes_per_record: float | None = None,
) -> Comparison:
    samples = (Samples(client, tuple(map(figure, each))) for client, each in readings.items())
    return Comparison(shape.name, tuple(samples), bytes_per_record)
