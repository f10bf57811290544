"""Counting the dead letters of queries, for drivers: their tasks are other processes."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, final

from ...domain.partition_offsets import PartitionOffsets
from ...domain.values.bad_records import BadRecordStats
from .dead_letter_log import LetterFilter

if TYPE_CHECKING:
    from ...domain.reading.offset_range import OffsetRange
    from ...ports.clock import Clock
    from .dead_letter_log import DeadLetterLog, Letters

COUNT_TIMEOUT_MS: Final = 5_000
"""How long one call reads letters; the next one goes on from there."""

_ALL: Final = LetterFilter()


@final
class LetterCounter:
    """Reads the headers of a dead-letter topic, each letter once.

    Letters that retried tasks wrote again count again. One thread at a time may use it.
    """

    def __init__(
        self, log: DeadLetterLog, clock: Clock, count_timeout_ms: int = COUNT_TIMEOUT_MS
    ) -> None:
        self._log = log
        self._clock = clock
        self._count_timeout_ms = count_timeout_ms
        self._next = PartitionOffsets()
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def count(self, query_id: str) -> BadRecordStats:
        """Return the letters of a query that the topic held, including what is new.

        :raises PysparkKafkaError: if the topic cannot be read.
        """
        deadline = self._clock.now_ms() + self._count_timeout_ms
        for each in self._log.ranges(self._next):
            if not self._read(each, deadline):
                break
        counted = self._counts[query_id]
        return BadRecordStats.from_names(counted, counted.total())

    def _read(self, offset_range: OffsetRange, deadline: int) -> bool:
        """Count the letters of a range; return whether that was done in time."""
        for found in self._log.read([offset_range], _ALL):
            self._add(found)
            last = int(found.records.column("offset")[-1].as_py())
            self._next = self._next.merge({offset_range.partition: last + 1})
            if self._clock.now_ms() >= deadline:
                return False
        self._next = self._next.merge({offset_range.partition: offset_range.until_offset})
        return True

    def _add(self, found: Letters) -> None:
        for _, letter, _ in found.letters:
            if letter.has_known_reason:
                self._counts[letter.query][letter.reason] += 1
