"""The speed at which continuous pipelines catch up with a topic."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, final

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.topic_partition import TopicPartition as Partition
from pyspark_kafka.ports.clock import Deadline

from .bench import CLIENTS
from .end_to_end import Route
from .one_core_readers import record_reader
from .pipelines import JVM_CONTINUOUS, JVM_REAL_TIME, PIPELINES, PLAIN, Pipeline
from .plan import FULL
from .results import RECORDS_PER_SECOND, Comparison, Section
from .rounds import alternate
from .topics import B100_KEYS, partitions_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .bench import Bench
    from .topics import Topic

PARTITIONS: Final = 4
LOOK_SECONDS: Final = 0.02
REQUEST_SECONDS: Final = 30.0
SETTLED_SECONDS: Final = 1.0
"""The time without further output after which a pipeline has caught up."""

TIMEOUT_SECONDS: Final = 300.0

_NUMBERS: Final = itertools.count()


@final
@dataclass(frozen=True, slots=True)
class Look:
    """How many offsets of an output were visible, at a time in seconds."""

    at: float
    visible: int


ABOUT: Final = (
    f"The pipelines of the section before read a full topic with {partitions_text(PARTITIONS)} "
    "from its beginning, and pass keys, values and partitions on. The figure is the rate from the "
    f"first record that consumers can see behind a pipeline to the last, looked at every "
    f"{LOOK_SECONDS * 1000:.0f} ms; starting a query does not count. After that, the records that "
    f"came out are counted. There are {FULL.max_continuous_rounds} rounds at most."
)


def measure_catch_up(bench: Bench) -> Section:
    """Compare the pipelines while they read a full topic."""
    topic = bench.topics.filled(B100_KEYS, PARTITIONS)
    runs = {
        name: partial(_rate, bench, pipeline, topic)
        for name, pipeline in PIPELINES.items()
        if name != PLAIN
    }
    plan = replace(bench.plan, runs=min(bench.plan.runs, bench.plan.max_continuous_rounds))
    comparison = Comparison(
        f"{topic.shape.name}; {partitions_text(topic.partitions)}",
        alternate(runs, plan),
        topic.shape.value_bytes,
    )
    return Section(
        "catch-up",
        "Continuous processing, catching up",
        ABOUT,
        RECORDS_PER_SECOND,
        (comparison,),
        peers=(JVM_REAL_TIME, JVM_CONTINUOUS),
    )


def _rate(bench: Bench, pipeline: Pipeline, topic: Topic) -> float:
    sink = f"caught-up-{next(_NUMBERS)}"
    bench.kafka.create_topic(sink, topic.partitions)
    route = Route(bench.kafka.bootstrap_servers, topic.name, sink, topic.partitions)
    output = Output(route, pipeline.isolation_level)
    with pipeline.open(route):
        looks = await_caught_up(output.visible, topic.records, TIMEOUT_SECONDS)
    if (count := output.count_records()) != topic.records:
        raise RuntimeError(f"{count:,} records came out of {topic.records:,}")
    bench.kafka.delete_topic(sink)
    return rate_of(looks, topic.records)


@final
class Output:
    """The topic behind a pipeline."""

    def __init__(self, route: Route, isolation_level: str) -> None:
        self._servers = route.bootstrap_servers
        self._admin = AdminClient({"bootstrap.servers": self._servers, "log_level": 0})
        self._topic = route.sink
        latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        self._request = {
            TopicPartition(route.sink, number): latest for number in range(route.partitions)
        }
        self._isolation_level = isolation_level

    def visible(self) -> int:
        """Return how many offsets consumers can read."""
        return sum(self._ends().values())

    def count_records(self) -> int:
        """Read the topic to its end, and return how many records it has."""
        with record_reader(self._servers, CLIENTS[0], self._isolation_level) as read:
            return sum(
                rows
                for number, end in self._ends().items()
                for rows in read(OffsetRange(Partition(self._topic, number), 0, end))
            )

    def _ends(self) -> dict[int, int]:
        futures = self._admin.list_offsets(
            self._request,
            isolation_level=IsolationLevel[self._isolation_level.upper()],
            request_timeout=REQUEST_SECONDS,
        )
        return {
            partition.partition: future.result(REQUEST_SECONDS).offset
            for partition, future in futures.items()
        }


def await_caught_up(
    visible: Callable[[], int], records: int, timeout_seconds: float
) -> Sequence[Look]:
    """Return the looks at which the output had grown, from the first records to the last.

    :raises TimeoutError: if the output does not get that far.
    """
    deadline = Deadline.after(timeout_seconds)
    looks: list[Look] = []
    while True:
        look = Look(time.monotonic(), visible())
        if look.visible > (looks[-1].visible if looks else 0):
            looks.append(look)
        elif looks and looks[-1].visible >= records and look.at - looks[-1].at > SETTLED_SECONDS:
            return looks
        if deadline.has_passed:
            raise TimeoutError(f"{look.visible:,} of {records:,} records came out in time")
        time.sleep(LOOK_SECONDS)


def rate_of(looks: Sequence[Look], records: int) -> float:
    """Return the records per second from the first that were visible to the last.

    The markers of transactions take offsets, too: the visible offsets are scaled to the records.

    :raises ValueError: if all records became visible at once.
    """
    first, last = looks[0], looks[-1]
    if first.visible == last.visible:
        raise ValueError("all records became visible at once: more of them are needed")
    share = (last.visible - first.visible) / last.visible
    return records * share / (last.at - first.at)
