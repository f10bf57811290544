"""Numbered records: somebody who writes them, and somebody who looks for each.

Both are librdkafka's, whoever's client the queries use: what is tested does not judge itself.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, final

import confluent_kafka
import numpy as np
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DIGITS: Final = 12
_PADDING: Final = b"." * 88
_TICK_S: Final = 0.02
_FLUSH_S: Final = 120.0
_AGAIN_S: Final = 0.2
_AT_ONCE: Final = 10_000
_LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]


class SoakError(AssertionError):
    """Records are lost or doubled, or do not come."""


@final
class NumberProducer:
    """Writes 0, 1, 2 and so on, spread over partitions, so many a second."""

    def __init__(self, servers: str, topic: str, partitions: int, rate: int) -> None:
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0}
        )
        self._topic = topic
        self._partitions = partitions
        self._per_tick = max(1, int(rate * _TICK_S))
        self._failures: list[str] = []
        self._is_to_stop = threading.Event()
        self.count = 0

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write for as long as the block lasts; then all of it is in Kafka.

        :raises SoakError: if it is not.
        """
        self._is_to_stop.clear()
        thread = threading.Thread(target=self._write, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_to_stop.set()
            thread.join()
        left = self._producer.flush(_FLUSH_S)
        if left or self._failures:
            raise SoakError(f"{left} numbers were not written, {self._failures[:3]}")

    def _write(self) -> None:
        while not self._is_to_stop.wait(_TICK_S):
            for number in range(self.count, self.count + self._per_tick):
                self._producer.produce(
                    self._topic,
                    b"%0*d" % (DIGITS, number) + _PADDING,
                    partition=number % self._partitions,
                    on_delivery=self._delivered,
                )
            self.count += self._per_tick
            self._producer.poll(0)

    def _delivered(self, error: Any, _message: Any) -> None:
        if error:
            self._failures.append(str(error))


@final
class NumberReader:
    """Counts how often it has seen each number, of committed records or of all."""

    def __init__(self, servers: str, topic: str, partitions: int, *, committed: bool) -> None:
        isolation = "read_committed" if committed else "read_uncommitted"
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "soak",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "log_level": 0,
            }
        )
        self._servers = servers
        self._topic = topic
        self._partitions = [TopicPartition(topic, number) for number in range(partitions)]
        self._consumer.assign([TopicPartition(topic, one, 0) for one in range(partitions)])
        self._ends: dict[int, int] = {}
        self._seen = np.zeros(1 << 20, np.uint32)
        self.records = 0

    def close(self) -> None:
        """Hang up."""
        self._consumer.close()

    @property
    def duplicates(self) -> int:
        """How many records have a number that another one has as well."""
        return int((self._seen[self._seen > 1] - 1).sum())

    def missing(self, count: int) -> int:
        """Return how many of the first numbers are missing."""
        self._make_room(count)
        return int((self._seen[:count] == 0).sum())

    def await_all(self, count: int, deadline: float, meanwhile: Callable[[], None]) -> None:
        """Read until each of the first numbers was seen, doing something meanwhile.

        :raises SoakError: if some do not come in time.
        """
        while missing := self.missing(count):
            if time.monotonic() > deadline:
                first = int(np.flatnonzero(self._seen[:count] == 0)[0])
                raise SoakError(
                    f"{self._topic}: {missing} of {count} numbers do not come, the first is {first}"
                )
            meanwhile()
            self._read()

    def await_end(self, deadline: float) -> None:
        """Read until the ends of the partitions, which no open transaction may hold up.

        :raises SoakError: if one does, or if the ends are not reached in time.
        """
        while (stable := self._latest(committed=True)) != (high := self._latest(committed=False)):
            if time.monotonic() > deadline:
                raise SoakError(f"{self._topic}: a transaction hangs, {stable} is not {high}")
            time.sleep(_AGAIN_S)
        while any(self._ends.get(number, 0) < end for number, end in high.items()):
            if time.monotonic() > deadline:
                raise SoakError(f"{self._topic}: read to {self._ends}, and not to {high}")
            self._read()

    def _latest(self, *, committed: bool) -> dict[int, int]:
        """Return the ends of all partitions; unique negative numbers if they are unknown."""
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        # One that is kept never forgets a leader, even when it is told FENCED_LEADER_EPOCH.
        admin = AdminClient({"bootstrap.servers": self._servers, "log_level": 0})
        asked = admin.list_offsets(
            dict.fromkeys(self._partitions, _LATEST), isolation_level=level, request_timeout=30.0
        )
        ends = {}
        for one, future in asked.items():
            try:
                ends[one.partition] = future.result(60.0).offset
            except confluent_kafka.KafkaException:
                ends[one.partition] = -1 if committed else -2
        return ends

    def _read(self) -> None:
        numbers = []
        for message in self._consumer.consume(_AT_ONCE, 0.2):
            error, value = message.error(), message.value()
            if error is None and value is not None:
                numbers.append(int(value[:DIGITS]))
            elif error is not None and error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                partition, offset = message.partition(), message.offset()
                if partition is not None and offset is not None:
                    self._ends[partition] = offset
        if numbers:
            self._make_room(max(numbers) + 1)
            np.add.at(self._seen, numbers, 1)
            self.records += len(numbers)

    def _make_room(self, count: int) -> None:
        if count > len(self._seen):
            more = np.zeros(max(count, 2 * len(self._seen)) - len(self._seen), np.uint32)
            self._seen = np.concatenate([self._seen, more])
