"""Reads without Spark, on one core."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Final

from .fresh_process import on_one_core
from .one_core_readers import CONSUME, CONSUMER_SETTINGS, POLL, READERS, SOCKET
from .rates import records_per_second
from .results import RECORDS_PER_SECOND, Comparison, Section
from .rounds import alternate
from .topics import B100, JSON200, KB1, Topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .bench import Bench
    from .one_core_readers import Read

SHAPES: Final = (B100, JSON200, KB1)
PARTITIONS: Final = 4
WARM_UP_BATCHES: Final = 2

TUNED: Final = (
    "queued.min.messages",
    "fetch.queue.backoff.ms",
    "queued.max.messages.kbytes",
    "fetch.wait.max.ms",
)

ABOUT: Final = (
    "A process on one core reads the partitions of a topic one after another; the broker has the "
    "other cores. `kafka-python` and `confluent` are this library's `RecordReader`, reading into "
    f"Arrow without headers. `{CONSUME}` is confluent-kafka's, with "
    + ", ".join(f"`{name}={CONSUMER_SETTINGS[name]}`" for name in TUNED)
    + f", its keys, values, offsets and timestamps converted to Arrow. `{POLL}` is kafka-python's; "
    f"its records are only counted. The {SOCKET} receives fetch responses into one buffer without "
    "decoding them: the upper limit. A run ends with the topic, or after some seconds if that is "
    "earlier."
)


def measure_one_core(bench: Bench) -> Section:
    """Compare the readers for every shape, each in a new process."""
    return Section(
        "one-core",
        "No Spark, one core",
        ABOUT,
        RECORDS_PER_SECOND,
        tuple(_compare(bench, bench.topics.filled(shape, PARTITIONS)) for shape in SHAPES),
        peers=(CONSUME, POLL, SOCKET),
    )


def _compare(bench: Bench, topic: Topic) -> Comparison:
    servers, seconds = bench.kafka.bootstrap_servers, bench.plan.read_seconds
    runs = {
        name: partial(on_one_core, reading_rate, name, servers, topic, seconds) for name in READERS
    }
    return Comparison(topic.shape.name, alternate(runs, bench.plan), topic.shape.value_bytes)


def reading_rate(reader: str, bootstrap_servers: str, topic: Topic, seconds: float) -> float:
    """Return the records per second of a connected and warm reader."""
    with READERS[reader](bootstrap_servers) as read:
        for _ in itertools.islice(_counts(read, topic), WARM_UP_BATCHES):
            pass
        return records_per_second(_counts(read, topic), seconds)


def _counts(read: Read, topic: Topic) -> Iterator[int]:
    return itertools.chain.from_iterable(read(one) for one in topic.ranges)
