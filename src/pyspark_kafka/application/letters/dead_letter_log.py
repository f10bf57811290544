"""Reading and counting dead letters, and writing their records back."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import pyarrow as pa

from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading.ranges import OffsetRange
from ...domain.reading.records import Projection
from ...domain.subscription import Subscribe
from ...domain.topic_partition import TopicPartition
from ...domain.values.dead_letter import DeadLetter, Header, original_headers
from ...domain.values.errors import BadRecordStats
from ...ports.record_schema import TYPES
from ..continuous.progress import milliseconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ...domain.reading.ranges import OffsetRange
    from ...ports.clock import Clock
    from ...ports.reading import OffsetFetcher
    from ...ports.writing import RecordWriter
    from ..reading.range_read import RangeRead

_HEADERS_ONLY: Final = Projection(("offset", "headers", "timestamp", "timestampType"))
_CREATE_TIME: Final = 0
_NOWHERE: Final = PartitionOffsets()
_WHOLE: Final = Projection(("key", "value", "headers", "timestamp", "timestampType"))


@final
@dataclass(frozen=True, slots=True)
class LetterFilter:
    """The wanted letters, by the content of their headers; ``None`` means any.

    ``offsets`` are the bounds of the origin's offset, the end excluded, and ``until_ms`` a
    timestamp that is excluded as well: milliseconds since the epoch.
    """

    topic: str | None = None
    reasons: frozenset[str] | None = None
    offsets: tuple[int, int] | None = None
    until_ms: int | None = None

    def wants(self, letter: DeadLetter, timestamp_ms: int) -> bool:
        """Return whether a letter is wanted."""
        return (
            self.topic in (None, letter.origin.topic)
            and (self.reasons is None or letter.reason in self.reasons)
            and (self.offsets is None or self.offsets[0] <= letter.offset < self.offsets[1])
            and (self.until_ms is None or timestamp_ms < self.until_ms)
        )


@final
@dataclass(frozen=True, slots=True)
class Letters:
    """The wanted letters of one batch: the number of each one's row, and its headers."""

    records: pa.RecordBatch
    letters: Sequence[tuple[int, DeadLetter, Sequence[Header]]]
    unwanted: int = 0
    others: int = 0
    """The number of records that are not letters."""

    def place(self, number: int) -> Place:
        """Return which record a letter is about."""
        row, letter, _ = self.letters[number]
        return hash((letter.origin, letter.offset, _content(self.records, row)))


Place: TypeAlias = int
"""A hash of a record's partition and offset, and of what it is: a topic may be created again.

One of 64 bits, since a topic may have millions of letters.
"""


def _content(records: pa.RecordBatch, row: int) -> int:
    names: list[str] = [name for name in ("key", "value") if name in records.schema.names]
    if records.column("timestampType")[row].as_py() == _CREATE_TIME:
        # Otherwise it is the letter's own time.
        names.append("timestamp")
    return hash(tuple(records.column(name)[row].as_py() for name in names))


@final
class DeadLetterLog:
    """Reads a dead-letter topic."""

    def __init__(
        self, fetcher: OffsetFetcher, make_read: Callable[[], RangeRead], topic: str
    ) -> None:
        """Take a factory of reads; each read serves one range."""
        self._fetcher = fetcher
        self._make_read = make_read
        self._topic = topic

    def ranges(self, starts: PartitionOffsets = _NOWHERE) -> list[OffsetRange]:
        """Return what the topic holds now, from these offsets on where they are given.

        A partition that ends before them was created again, and is returned as a whole.

        :raises UnknownTopicError: if the topic does not exist.
        """
        partitions = self._partitions()
        earliest, latest = self._fetcher.earliest(partitions), self._fetcher.latest(partitions)
        reached = {one: offset for one, offset in starts.items() if offset <= latest.get(one, -1)}
        firsts = {one: max(first, reached.get(one, 0)) for one, first in earliest.items()}
        return [
            OffsetRange(partition, firsts[partition], end)
            for partition, end in sorted(latest.items())
            if partition in firsts and firsts[partition] < end
        ]

    def committed(self, group_id: str) -> PartitionOffsets:
        """Return where the letters begin that a group has not replayed."""
        return self._fetcher.committed(group_id, self._partitions())

    def commit(self, group_id: str, ranges: Iterable[OffsetRange]) -> None:
        """Commit the ends of ranges, which are then the group's ``committed`` offsets."""
        ends = {each.partition: each.until_offset for each in ranges}
        if ends:
            self._fetcher.commit(group_id, PartitionOffsets(ends))

    def read(
        self, ranges: Iterable[OffsetRange], wanted: LetterFilter, *, with_records: bool = False
    ) -> Iterator[Letters]:
        """Yield the wanted letters; with their keys and values, or without."""
        projection = _WHOLE if with_records else _HEADERS_ONLY
        for each in ranges:
            for records in self._make_read().read(each, projection):
                yield _letters(records, wanted)

    def _partitions(self) -> frozenset[TopicPartition]:
        return self._fetcher.partitions(Subscribe((self._topic,)))


@final
@dataclass(slots=True)
class LetterCount:
    """A record that could not be decoded, and how many letters it has."""

    letter: DeadLetter
    letters: int = 0


@final
@dataclass(slots=True)
class LetterSummary:
    """The first distinct records of letters in the order of the topic, and the totals.

    ``reasons`` counts records, each once.
    """

    limit: int
    records: dict[Place, LetterCount] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    letters: int = 0
    others: int = 0
    _seen: set[Place] = field(default_factory=set)

    @property
    def total(self) -> int:
        """The number of records."""
        return self.reasons.total()

    def add(self, found: Letters) -> None:
        """Add letters."""
        self.others += found.others
        self.letters += len(found.letters)
        for number, (_, letter, _) in enumerate(found.letters):
            place = found.place(number)
            if place not in self._seen:
                self._seen.add(place)
                self.reasons[letter.reason] += 1
                if len(self.records) < self.limit:
                    self.records[place] = LetterCount(letter)
            if (count := self.records.get(place)) is not None:
                count.letters += 1


@final
@dataclass(frozen=True, slots=True)
class ReplayStats:
    """How many records were written back, by topic, and how many letters were not."""

    replayed: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    unwanted: int = 0
    others: int = 0

    def __add__(self, other: ReplayStats) -> ReplayStats:
        return ReplayStats(
            self.replayed + other.replayed,
            self.duplicates + other.duplicates,
            self.unwanted + other.unwanted,
            self.others + other.others,
        )


@final
class LetterReplay:
    """Writes the records of letters back to their topics, each record once."""

    def __init__(self, writer: RecordWriter | None, topic: str | None) -> None:
        """Take a writer, or ``None`` to count only, and the topic of all records.

        Without a topic, each record goes to the topic and the partition from which it came.
        """
        self._writer = writer
        self._topic = topic
        self._seen: set[Place] = set()

    def write(self, found: Letters) -> ReplayStats:
        """Send the records of letters whose record was not sent yet."""
        fresh = []
        for number, letter in enumerate(found.letters):
            if (place := found.place(number)) not in self._seen:
                self._seen.add(place)
                fresh.append(letter)
        if fresh and self._writer is not None:
            self._writer.write(self._records(found.records, fresh), self._topic)
        return ReplayStats(
            Counter(self._topic or letter.origin.topic for _, letter, _ in fresh),
            len(found.letters) - len(fresh),
            found.unwanted,
            found.others,
        )

    def flush(self) -> None:
        """Wait until all records are acknowledged."""
        if self._writer is not None:
            self._writer.flush()

    def _records(
        self, records: pa.RecordBatch, letters: Sequence[tuple[int, DeadLetter, Sequence[Header]]]
    ) -> pa.RecordBatch:
        taken = records.select(["key", "value", "timestamp"]).take([row for row, _, _ in letters])
        columns = dict(zip(taken.schema.names, taken.columns, strict=True))
        columns["headers"] = _column("headers", [_pairs(headers) for _, _, headers in letters])
        if self._topic is None:
            origins = [letter.origin for _, letter, _ in letters]
            columns["topic"] = _column("topic", [origin.topic for origin in origins])
            columns["partition"] = _column("partition", [origin.partition for origin in origins])
        return pa.RecordBatch.from_pydict(columns)


def _letters(records: pa.RecordBatch, wanted: LetterFilter) -> Letters:
    timestamps = milliseconds_of(records)
    letters: list[tuple[int, DeadLetter, Sequence[Header]]] = []
    unwanted = others = 0
    for row, pairs in enumerate(records.column("headers").to_pylist()):
        headers = [(pair["key"], pair["value"]) for pair in pairs or ()]
        letter = DeadLetter.from_headers(headers)
        if letter is None:
            others += 1
        elif wanted.wants(letter, int(timestamps[row])):
            letters.append((row, letter, headers))
        else:
            unwanted += 1
    return Letters(records, letters, unwanted, others)


def _pairs(headers: Sequence[Header]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in original_headers(headers)]


def _column(name: str, values: list[Any]) -> pa.Array[Any]:
    return pa.array(values, TYPES[name])


COUNT_TIMEOUT_MS: Final = 5_000
"""How long one call reads letters; the next one continues from there."""

_ALL: Final = LetterFilter()


@final
@dataclass(slots=True)
class LetterTally:
    """The counted letters by query and reason, and the offsets of those to count next."""

    next: PartitionOffsets = _NOWHERE
    counts: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))


@final
class LetterCounter:
    """Reads the headers of a dead-letter topic, each letter once.

    Letters that retried tasks wrote again count again. One thread at a time may use it. Another
    counter of the same topic continues with its ``tally``.
    """

    def __init__(
        self, log: DeadLetterLog, clock: Clock, count_timeout_ms: int = COUNT_TIMEOUT_MS
    ) -> None:
        self._log = log
        self._clock = clock
        self._count_timeout_ms = count_timeout_ms
        self.tally = LetterTally()

    def count(self, query_id: str) -> BadRecordStats:
        """Return the letters of a query that the topic held, including what is new.

        :raises PysparkKafkaError: if the topic cannot be read.
        """
        deadline = self._clock.now_ms() + self._count_timeout_ms
        for each in self._log.ranges(self.tally.next):
            if not self._read(each, deadline):
                break
        counted = self.tally.counts[query_id]
        return BadRecordStats.from_names(counted, counted.total())

    def _read(self, offset_range: OffsetRange, deadline: int) -> bool:
        """Count the letters of a range; return whether that was done in time."""
        for found in self._log.read([offset_range], _ALL):
            self._add(found)
            last = int(found.records.column("offset")[-1].as_py())
            self._pass(offset_range.partition, last + 1)
            if self._clock.now_ms() >= deadline:
                return False
        self._pass(offset_range.partition, offset_range.until_offset)
        return True

    def _pass(self, partition: TopicPartition, next_offset: int) -> None:
        self.tally.next = self.tally.next.merge({partition: next_offset})

    def _add(self, found: Letters) -> None:
        for _, letter, _ in found.letters:
            if letter.has_known_reason:
                self.tally.counts[letter.query][letter.reason] += 1
