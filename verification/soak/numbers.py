"""Numbered records: a producer of them, and a reader that looks for each.

Both are librdkafka's with any client of the queries: what is tested does not judge itself.
"""

import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Self

import confluent_kafka
import numpy as np
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from numpy.typing import NDArray

from tests.slowness import bound_s

DIGITS: Final = 12
TICK_S: Final = 0.1
"""How often records are written: a broker works as long for one of them as for a hundred."""

_FLUSH_S: Final = bound_s(120)
_NEW_PARTITION_S: Final = bound_s(30)
_AGAIN_S: Final = 0.2
_MAX_PAUSE_S: Final = 10.0
_AT_ONCE: Final = 10_000
_NEWEST: Final = 100_000
_LOG_S: Final = 120.0
READ_S: Final = 0.05
_UNKNOWN: Final = -1
_ALL: Final = 1 << 62
_LATEST: Final = OffsetSpec.latest()


class SoakError(AssertionError):
    """Records are lost or doubled, or do not come."""


class MissingError(SoakError):
    """Numbers that are in the source do not come."""

    def __init__(self, topic: str, numbers: NDArray[np.int64], count: int) -> None:
        self.numbers = numbers
        super().__init__(
            f"{topic}: {len(numbers)} of {count} numbers do not come, from {numbers[0]} on"
        )


@dataclass(frozen=True, slots=True)
class RecordShape:
    """The size of values, how much of each does not compress, and the producer's codec."""

    size: int = 100
    noise: int = 0
    codec: str = "none"

    @classmethod
    def chosen(cls, chance: Random) -> Self:
        codec = chance.choice(("none", "gzip", "snappy", "lz4", "zstd"))
        return cls(chance.choice((100, 500)), chance.choice((0, 50)), codec)

    @classmethod
    def of_backlog(cls, chance: Random) -> Self:
        """Return a shape of large values that still fit many times into a response."""
        return cls(
            chance.choice((300, 1_000, 2_000)),
            chance.choice((0, 4, 8)),
            chance.choice(("gzip", "lz4", "zstd")),
        )

    def value(self, number: int) -> bytes:
        head = b"%0*d" % (DIGITS, number)
        start = 13 * number % (len(_NOISE) - self.noise)
        return (head + _NOISE[start : start + self.noise]).ljust(self.size, b".")


_NOISE: Final = Random(0).randbytes(1 << 20)  # noqa: S311


class NumberProducer:
    """Writes 0, 1, 2 and so on, spread over ``partitions``, so many a second.

    Two successive numbers of a partition have the same key: compaction removes the first of them.
    """

    def __init__(
        self, servers: str, topic: str, partitions: int, rate: int, tick_s: float = TICK_S
    ) -> None:
        self._servers = servers
        self._topic = topic
        self._tick_s = tick_s
        self._per_tick = max(1, int(rate * tick_s))
        self._failures: list[str] = []
        self._is_to_stop = threading.Event()
        self._written = array("q")
        """The number, partition and offset of each record; -1 is an unknown offset."""
        self._superseded = array("q")
        """The numbers that another one with the same key follows."""
        self._removed = np.array([], np.int64)
        """The numbers that were once missing from the log."""
        self._is_paused = threading.Lock()
        self._compacted = 0
        self._shape = RecordShape()
        self.partitions = partitions
        self.count = 0
        self.changes = 0
        """How often records have begun, or ceased, to be deleted: odd while they are."""
        self.begun = 0
        """The first number of the topic that there is."""
        self._counted = self._max_before = 0
        self.begin_topic()

    def begin_topic(self) -> None:
        """Write to a topic that was created again, and forget where the numbers before are."""
        self._producer = self._new_producer()
        self._written = array("q")
        self.starts: dict[int, int] = {}
        self.begun = self.count

    def use(self, shape: RecordShape) -> None:
        """Write records of another shape from now on; not while a thread writes."""
        self._flush()
        self._shape = shape
        self._producer = self._new_producer()

    def begin_at(self, starts: Mapping[int, int]) -> None:
        """Take it that the records before an offset of each partition are deleted."""
        for partition, start in starts.items():
            self.starts[partition] = max(start, self.starts.get(partition, 0))

    @contextmanager
    def deleting(self) -> Iterator[None]:
        """Take it that records are deleted in the block."""
        self.changes += 1
        try:
            yield
        finally:
            self.changes += 1

    @contextmanager
    def compacting(self) -> Iterator[None]:
        """Take it that the topic is compacted in the block.

        Each broker compacts by itself: what is gone from the present leaders is noted at the end.
        """
        before, self._compacted = self._compacted, _ALL
        try:
            yield
        finally:
            self._compacted = max(before, self.count)
            self._note_removed(np.array(self._superseded[:], np.int64))

    def ends(self) -> dict[int, int]:
        _, partitions, offsets = self._columns()
        ends = {one: offsets[partitions == one] for one in range(self.partitions)}
        return {one: int(found.max(initial=-1)) + 1 for one, found in ends.items()}

    def places(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the partitions and the offsets of numbers, each -1 if it is unknown."""
        written, partitions, offsets = self._columns()
        size = max(int(numbers.max(initial=0)), int(written.max(initial=0))) + 1
        of_number = np.full((2, size), _UNKNOWN, np.int64)
        of_number[:, written] = partitions, offsets
        partitions, offsets = of_number[:, numbers]
        return partitions, offsets

    @property
    def is_compacted(self) -> bool:
        return self._compacted > 0

    def compacted(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of some numbers that compaction has removed.

        A later number has the key of each, and the log lacks it, or once lacked it.
        """
        superseded = np.array(self._superseded[:], np.int64)
        gone = np.intersect1d(numbers, superseded[superseded < self._compacted])
        self._note_removed(np.setdiff1d(gone, self._removed))
        return np.intersect1d(gone, self._removed)

    def _note_removed(self, numbers: NDArray[np.int64]) -> None:
        """Look in the log which of some numbers are gone."""
        if not len(numbers):
            return
        partitions, offsets = self.places(numbers)
        numbers, partitions, offsets = (
            each[offsets >= 0] for each in (numbers, partitions, offsets)
        )
        ranges: dict[int, tuple[int, int | None]] = {}
        for one in np.unique(partitions):
            of_partition = offsets[partitions == one]
            ranges[int(one)] = int(of_partition.min()), int(of_partition.max()) + 1
        held = read_log(self._servers, self._topic, ranges)[0]
        self._removed = np.union1d(self._removed, np.setdiff1d(numbers, held))

    def spread_over(self, partitions: int) -> None:
        """Write to so many partitions from now on, which exist."""
        self._max_before = self.max_end()
        self._counted, self.partitions = self.count, partitions

    def max_end(self) -> int:
        """Return what no partition's end is beyond, at any time."""
        written = self.count - self._counted + self._per_tick
        return self._max_before + written // self.partitions + 1

    def delivered(self, partition: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the offsets of a partition, and their numbers, without gaps up to the last one.

        Only the newest are there; at any time, also while it writes.
        """
        newest = np.array(self._written[-3 * _NEWEST :], np.int64).reshape(-1, 3).T
        of_partition = newest[1] == partition
        numbers, offsets = newest[0][of_partition], newest[2][of_partition]
        order = np.argsort(offsets)
        numbers, offsets = numbers[order], offsets[order]
        gaps = np.flatnonzero(np.diff(offsets) != 1)
        # What comes out of order is between gaps for a moment.
        start = int(gaps[-1]) + 1 if len(gaps) else 0
        start = max(start, int(np.searchsorted(offsets, self.starts.get(partition, 0))))
        return offsets[start:], numbers[start:]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write for as long as the block lasts; then all of it is in Kafka."""
        self._is_to_stop.clear()
        thread = threading.Thread(target=self._write, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_to_stop.set()
            thread.join()
        self._flush()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Write nothing in the block; all that was written before is in Kafka."""
        with self._is_paused:
            self._flush()
            yield

    def write_backlog(self, count: int) -> None:
        """Write at least so many numbers at once; then all of them are in Kafka."""
        until = self.count + count
        while self.count < until:
            self._write_tick()
        self._flush()

    def _new_producer(self) -> confluent_kafka.Producer:
        return confluent_kafka.Producer(
            {
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "compression.type": self._shape.codec,
                "topic.metadata.refresh.interval.ms": 1_000,
                "log_level": 0,
            }
        )

    def _flush(self) -> None:
        left = self._producer.flush(_FLUSH_S)
        if left or self._failures:
            raise SoakError(f"{left} numbers were not written, {self._failures[:3]}")
        self._learn_offsets()

    def _learn_offsets(self) -> None:
        """Look in the log for the offsets of numbers that no report of a delivery had."""
        numbers, partitions, offsets = self._columns()
        is_unknown = offsets == _UNKNOWN
        if not is_unknown.any():
            return
        ranges: dict[int, tuple[int, int | None]] = {}
        for one in np.unique(partitions[is_unknown]):
            first = numbers[is_unknown & (partitions == one)].min()
            before = (partitions == one) & (numbers < first)
            ranges[int(one)] = int(offsets[before].max(initial=_UNKNOWN)) + 1, None
        found = read_log(self._servers, self._topic, ranges)
        of_number = dict(zip(found[0].tolist(), found[2].tolist(), strict=True))
        for place in np.flatnonzero(is_unknown).tolist():
            self._written[3 * place + 2] = of_number.get(int(numbers[place]), _UNKNOWN)

    def _write(self) -> None:
        try:
            while not self._is_to_stop.wait(self._tick_s):
                self._write_tick()
        except Exception as error:  # noqa: BLE001  # it is raised where the block ends
            self._failures.append(repr(error))

    def _write_tick(self) -> None:
        with self._is_paused:
            for number in range(self.count, self.count + self._per_tick):
                self._produce(number)
            self.count += self._per_tick
            self._producer.poll(0)

    def _produce(self, number: int) -> None:
        deadline = time.monotonic() + _NEW_PARTITION_S
        is_second = number // self.partitions % 2
        first = number - self.partitions if is_second else number
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    self._shape.value(number),
                    # Numbers that were spread over fewer partitions have other keys.
                    b"%d/%d" % (first, self.partitions),
                    partition=number % self.partitions,
                    on_delivery=self._delivered,
                )
            except BufferError:
                # Its queue is full.
                self._producer.poll(self._tick_s)
            except confluent_kafka.KafkaException as error:
                # It looks for partitions that were added from time to time.
                is_new = error.args[0].code() == confluent_kafka.KafkaError._UNKNOWN_PARTITION
                if not is_new or time.monotonic() > deadline:
                    self._failures.append(str(error))
                    return
                self._producer.poll(self._tick_s)
            else:
                return

    def _delivered(self, error: Any, message: Any) -> None:
        if error:
            self._failures.append(str(error))
        else:
            number, offset = int(message.value()[:DIGITS]), message.offset()
            # librdkafka does not know the offset of what a broker took for a repetition, and its
            # binding raises SystemError where an error leaves this function.
            known = _UNKNOWN if offset is None else offset
            self._written.extend((number, message.partition(), known))
            first = int(message.key().partition(b"/")[0])
            if first != number:
                self._superseded.append(first)

    def _columns(self) -> NDArray[np.int64]:
        # Of a copy: an array that is read cannot grow.
        return np.array(self._written[:], np.int64).reshape(-1, 3).T


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
        self._excused = np.zeros(1 << 20, np.bool_)
        self._newest: dict[int, int] = {}
        self.excuses: Counter[str] = Counter()
        """How many numbers that are missing were excused in this round, by the reason."""
        self.records = 0
        self.out_of_order = 0
        """How many numbers are behind a greater one, where they are for the first time."""

    def close(self) -> None:
        self._consumer.close()

    def newest(self, partition: int) -> int:
        return self._newest.get(partition, _UNKNOWN)

    def newest_of_all(self) -> int:
        return max(self._newest.values(), default=_UNKNOWN)

    @property
    def duplicates(self) -> int:
        return int((self._seen[self._seen > 1] - 1).sum())

    def missing(self, count: int) -> int:
        return len(self._missing(count))

    def await_all(
        self,
        count: int,
        deadline: float,
        meanwhile: Callable[[], None],
        excuses: Callable[[NDArray[np.int64]], Mapping[str, NDArray[np.int64]]] = lambda _: {},
    ) -> None:
        """Read until each of the first numbers was seen or is excused, doing something meanwhile.

        ``excuses`` gets numbers that are missing, and returns by a reason which need not come.
        """
        if not count:
            raise SoakError(f"{self._topic}: there is no number to look for")
        ask_at = time.monotonic()
        pause_s = _AGAIN_S
        while len(missing := self._missing(count)):
            before = self.records
            meanwhile()
            self.read()
            if self.records > before:
                ask_at, pause_s = time.monotonic() + _AGAIN_S, _AGAIN_S
            if time.monotonic() < min(ask_at, deadline):
                continue
            for reason, numbers in excuses(missing).items():
                self._excused[numbers] = True
                self.excuses[reason] += len(numbers)
            # Looking for excuses takes time, and processor time from the queries.
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)
            ask_at = time.monotonic() + pause_s
            if len(missing := self._missing(count)) and time.monotonic() > deadline:
                raise MissingError(self._topic, missing, count)

    def await_end(self, deadline: float) -> None:
        """Read until the ends of the partitions, which no open transaction may hold up."""
        while (stable := self._latest(committed=True)) != (high := self._latest(committed=False)):
            if time.monotonic() > deadline:
                raise SoakError(f"{self._topic}: a transaction hangs, {stable} is not {high}")
            time.sleep(_AGAIN_S)
        while any(self._ends.get(number, 0) < end for number, end in high.items()):
            if time.monotonic() > deadline:
                raise SoakError(f"{self._topic}: read to {self._ends}, and not to {high}")
            self.read()

    def _missing(self, count: int) -> NDArray[np.int64]:
        self._make_room(count)
        return np.flatnonzero((self._seen[:count] == 0) & ~self._excused[:count])

    def _latest(self, *, committed: bool) -> dict[int, int]:
        """Return the ends of all partitions; unique negative numbers if they are unknown."""
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        # One that is kept never forgets a leader, even after FENCED_LEADER_EPOCH.
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

    def read(self, seconds: float = READ_S) -> None:
        numbers: dict[int, list[int]] = {}
        for message in self._consumer.consume(_AT_ONCE, seconds):
            error, value, partition = message.error(), message.value(), message.partition()
            if partition is None:
                continue
            if error is None and value is not None:
                numbers.setdefault(partition, []).append(int(value[:DIGITS]))
            elif error is not None and error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                offset = message.offset()
                if offset is not None:
                    self._ends[partition] = offset
        for partition, of_partition in numbers.items():
            self._count(partition, np.array(of_partition))

    def _count(self, partition: int, numbers: NDArray[np.int64]) -> None:
        self._make_room(int(numbers.max()) + 1)
        places = np.sort(np.unique(numbers, return_index=True)[1])
        new = numbers[places][self._seen[numbers[places]] == 0]
        if len(new):
            steps = np.diff(new, prepend=self.newest(partition))
            self.out_of_order += int((steps < 0).sum())
            self._newest[partition] = max(self.newest(partition), int(new.max()))
        np.add.at(self._seen, numbers, 1)
        self.records += len(numbers)

    def _make_room(self, count: int) -> None:
        if count > len(self._seen):
            more = max(count, 2 * len(self._seen)) - len(self._seen)
            self._seen = np.concatenate([self._seen, np.zeros(more, np.uint32)])
            self._excused = np.concatenate([self._excused, np.zeros(more, np.bool_)])


def read_log(
    servers: str, topic: str, ranges: Mapping[int, tuple[int, int | None]]
) -> NDArray[np.int64]:
    """Return the number, partition and offset of each record of a topic, as three rows.

    A plain consumer reads each partition from an offset, or its first record, to another one, or
    its present end. librdkafka signals an end only while nothing is written.
    """
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "soak",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    deadline, found = time.monotonic() + _LOG_S, array("q")
    try:
        left = {
            one: consumer.get_watermark_offsets(TopicPartition(topic, one), _LOG_S)[1]
            if end is None
            else end
            for one, (_, end) in ranges.items()
        }
        consumer.assign([TopicPartition(topic, one, start) for one, (start, _) in ranges.items()])
        while left:
            if time.monotonic() > deadline:
                raise SoakError(f"{topic} was not read to {left}")
            for message in consumer.consume(_AT_ONCE, _AGAIN_S):
                error, value = message.error(), message.value()
                partition, offset = message.partition(), message.offset()
                if partition is None or offset is None:
                    continue
                if error is None and value is not None:
                    found.extend((int(value[:DIGITS]), partition, offset))
                is_end = error and error.code() == confluent_kafka.KafkaError._PARTITION_EOF
                if is_end or offset + 1 >= left.get(partition, offset + 2):
                    left.pop(partition, None)
    finally:
        consumer.close()
    return np.array(found, np.int64).reshape(-1, 3).T
