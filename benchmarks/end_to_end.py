"""The time from a record's sender to its receiver, with a pipeline between their topics.

Both are separate processes on one machine, so that both times are from one clock. A record's value
has the time of its sending.
"""

from __future__ import annotations

import gc
import struct
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final, final

import numpy as np
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from pyspark_kafka.ports.clock import Deadline

from .percentiles import percentiles_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import Event

    from confluent_kafka import KafkaError, Message
    from numpy.typing import NDArray

    from .results import Percentiles

VALUE_BYTES: Final = 100
STAMP: Final = struct.Struct("<qq")
"""The beginning of a value: when it was sent, in ns since the epoch, and its number."""

PADDING: Final = bytes(VALUE_BYTES - STAMP.size)

UNCOUNTED: Final = -1
"""The number of records whose latency does not count."""

PROBE_SECONDS: Final = 0.05
START_SECONDS: Final = 120.0
END_SECONDS: Final = 60.0

MIN_SLEEP_SECONDS: Final = 0.001
"""The minimum sleep of the sender: a shorter one would cost as much as it sends."""

MIN_WARM_UP_RATE: Final = 1_000
"""The minimum rate before latencies count, so that code on a record's way is compiled by then."""

SETTLING_SECONDS: Final = 1.0
"""The time at the load's own rate before latencies count."""


@final
@dataclass(frozen=True, slots=True)
class Route:
    """The topics before and behind a pipeline; both have ``partitions``."""

    bootstrap_servers: str
    source: str
    sink: str
    partitions: int


@final
@dataclass(frozen=True, slots=True)
class Load:
    """Records per second, for how long they count, and for how long others precede them."""

    rate: float
    seconds: float
    warm_up_seconds: float
    min_warm_up_rate: float = MIN_WARM_UP_RATE

    @property
    def count(self) -> int:
        """The number of records that count."""
        return max(1, round(self.rate * self.seconds))

    @property
    def text(self) -> str:
        """The rate as text."""
        if self.rate < 1:
            return f"a record every {1 / self.rate:,.0f} s"
        return f"{self.rate:,.0f} records/s"

    @property
    def total_seconds(self) -> float:
        """The time in which all records are sent."""
        return self.warm_up_seconds + SETTLING_SECONDS + self.seconds


def measure(route: Route, load: Load, isolation_level: str) -> Percentiles:
    """Return the latencies of a running pipeline.

    :raises TimeoutError: if no records come out of the pipeline.
    """
    context = get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(2, mp_context=context) as pool:
        flowing = manager.Event()
        receiver = pool.submit(receive, route, load, isolation_level, flowing)
        sender = pool.submit(send, route, load, flowing)
        sender.result()
        return receiver.result()


def send(route: Route, load: Load, flowing: Event) -> None:
    """Send probes until one has arrived, then records to warm up, then those that count."""
    gc.disable()
    sender = _Sender(route)
    deadline = Deadline.after(START_SECONDS)
    while not flowing.wait(PROBE_SECONDS):
        if deadline.has_passed:
            raise TimeoutError("no record arrived")
        sender.send([UNCOUNTED] * route.partitions, load.min_warm_up_rate)
    warm_up_rate = max(load.rate, load.min_warm_up_rate)
    sender.send([UNCOUNTED] * round(warm_up_rate * load.warm_up_seconds), warm_up_rate)
    sender.send([UNCOUNTED] * round(load.rate * SETTLING_SECONDS), load.rate)
    sender.send(range(load.count), load.rate)
    sender.flush()


@final
class _Sender:
    def __init__(self, route: Route) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": route.bootstrap_servers,
                "linger.ms": 0,
                "acks": "all",
                "delivery.report.only.error": True,
                "on_delivery": _raise_delivery_error,
                "log_level": 0,
            }
        )
        self._route = route

    def send(self, numbers: Sequence[int], rate: float) -> None:
        """Send a record for each number, at a rate.

        Records that are due at once go to one partition, and then to the next, as Kafka's
        partitioner does with records without keys (KIP-480): one by one they would need ten times
        the requests.
        """
        partition = 0
        began = time.perf_counter()
        for sent, number in enumerate(numbers):
            while (early := began + (sent + 1) / rate - time.perf_counter()) > 0:
                time.sleep(max(early, MIN_SLEEP_SECONDS))
                partition = (partition + 1) % self._route.partitions
            value = STAMP.pack(time.time_ns(), number) + PADDING
            self._producer.produce(self._route.source, value, partition=partition)
            self._producer.poll(0)

    def flush(self) -> None:
        if left := self._producer.flush(END_SECONDS):
            raise TimeoutError(f"{left} records were not sent")


def _raise_delivery_error(error: KafkaError | None, _message: Message) -> None:
    if error is not None:
        raise KafkaException(error)


def receive(route: Route, load: Load, isolation_level: str, flowing: Event) -> Percentiles:
    """Receive records until all those that count have come, and return their latencies."""
    gc.disable()
    consumer = Consumer(
        {
            "bootstrap.servers": route.bootstrap_servers,
            "group.id": "benchmarks",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": isolation_level,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(route.sink, number, 0) for number in range(route.partitions)])
    try:
        _await_first(consumer)
        flowing.set()
        return percentiles_of(_latencies(consumer, load))
    finally:
        consumer.close()


def _await_first(consumer: Consumer) -> None:
    deadline = Deadline.after(START_SECONDS)
    while not _polled(consumer):
        if deadline.has_passed:
            raise TimeoutError("no record arrived")


def _latencies(consumer: Consumer, load: Load) -> NDArray[np.int64]:
    latencies = np.full(load.count, -1, np.int64)
    left = load.count
    deadline = Deadline.after(load.total_seconds + END_SECONDS)
    while left:
        value = _polled(consumer)
        received = time.time_ns()
        if value is None:
            if deadline.has_passed:
                raise TimeoutError(f"{left} of {load.count} records did not arrive")
            continue
        sent, number = STAMP.unpack_from(value)
        # The first one counts where a pipeline repeats records.
        if number != UNCOUNTED and latencies[number] < 0:
            latencies[number] = received - sent
            left -= 1
    return latencies


def _polled(consumer: Consumer) -> bytes | None:
    # It returns as soon as there is a record; meanwhile the broker holds the fetch request.
    message = consumer.poll(1.0)
    if message is None:
        return None
    if error := message.error():
        raise KafkaException(error)
    return message.value()
