"""The decoder of record batches without a client, compared with a copy of the same bytes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark_kafka.domain.reading.ranges import OffsetRange

from .decoder_passes import COPY, PASSES
from .fresh_process import on_one_core
from .rates import records_per_second
from .raw_fetch import RawFetch
from .results import RECORDS_PER_SECOND, Comparison, Section
from .rounds import alternate
from .topics import B100, B100_HEADERS, JSON200, KB1, KB10, Topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .bench import Bench
    from .decoder_passes import Fetches, Pass

SHAPES: Final = (B100, B100_HEADERS, JSON200, KB1, KB10)
PARTITIONS: Final = 4
FETCHED_BYTES: Final = 64 << 20

ABOUT: Final = (
    f"A process on one core decodes about {FETCHED_BYTES >> 20} MiB of fetched record batches into "
    "Arrow, repeatedly, with checksums and with the headers if the records have them. "
    f"`{COPY}` is numpy's `copyto` of the same bytes into one buffer. MB/s count fetched bytes, "
    "after compression."
)


def measure_decoder(bench: Bench) -> Section:
    """Compare decoding with copying, for every shape."""
    return Section(
        "decoder",
        "The decoder alone, one core",
        ABOUT,
        RECORDS_PER_SECOND,
        tuple(_compare(bench, bench.topics.filled(shape, PARTITIONS)) for shape in SHAPES),
        peers=(COPY,),
    )


def _compare(bench: Bench, topic: Topic) -> Comparison:
    servers, seconds = bench.kafka.bootstrap_servers, bench.plan.read_seconds
    fetches = _fetches(servers, topic)
    size = sum(len(data) for _, data in fetches) / sum(offsets.size for offsets, _ in fetches)
    runs = {name: partial(on_one_core, pass_rate, name, servers, topic, seconds) for name in PASSES}
    return Comparison(topic.shape.name, alternate(runs, bench.plan), size)


def pass_rate(name: str, bootstrap_servers: str, topic: Topic, seconds: float) -> float:
    """Return the records per second of a repeated pass, after a warm-up."""
    run, fetches = PASSES[name], _fetches(bootstrap_servers, topic)
    for _ in run(topic.shape, fetches[:1]):
        pass
    return records_per_second(_repeated(run, topic, fetches), seconds)


def _repeated(run: Pass, topic: Topic, fetches: Fetches) -> Iterator[int]:
    while True:
        yield from run(topic.shape, fetches)


def _fetches(bootstrap_servers: str, topic: Topic) -> Fetches:
    offset_range, fetches, size = topic.ranges[0], [], 0
    with RawFetch(bootstrap_servers) as connection:
        offset = offset_range.from_offset
        for fetched in connection.read(offset_range):
            data = bytes(fetched.records)
            fetches.append((OffsetRange(offset_range.partition, offset, fetched.next_offset), data))
            offset, size = fetched.next_offset, size + len(data)
            if size >= FETCHED_BYTES:
                break
    return fetches
