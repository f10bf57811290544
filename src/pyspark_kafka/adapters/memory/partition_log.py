"""One partition's log in memory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, final

Headers = tuple[tuple[str, bytes | None], ...]

CREATE_TIME: Final = 0
APPEND_TIME: Final = 1


@final
@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record in the log; ``timestamp`` is in milliseconds since the epoch.

    A record that ``is_corrupt`` cannot be read, and stands for a batch with a wrong checksum.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int
    timestamp_type: int
    transaction: int | None = None
    is_corrupt: bool = False


@final
@dataclass(slots=True)
class PartitionLog:
    """Records by offset, with their transactions. Not thread-safe."""

    records: list[StoredRecord] = field(default_factory=list)
    start: int = 0
    end: int = 0
    open_transactions: dict[int, int] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)

    @property
    def last_stable_offset(self) -> int:
        """The end under ``read_committed``: the start of the first open transaction."""
        return min(self.open_transactions.values(), default=self.end)

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp: int,
        timestamp_type: int,
        transaction: int | None,
    ) -> int:
        """Append a record and return its offset."""
        offset = self.end
        if transaction is not None:
            self.open_transactions.setdefault(transaction, offset)
        self.records.append(
            StoredRecord(offset, key, value, headers, timestamp, timestamp_type, transaction)
        )
        self.end += 1
        return offset

    def end_transaction(self, transaction: int, *, commit: bool) -> None:
        """Write a control record, which takes an offset and is never read."""
        if self.open_transactions.pop(transaction, None) is None:
            return
        if not commit:
            self.aborted.add(transaction)
        self.end += 1

    def delete_before(self, offset: int) -> None:
        """Delete the records before ``offset``, as retention and ``DeleteRecords`` do."""
        self.start = max(self.start, min(offset, self.end))
        del self.records[: bisect_left(self.records, self.start, key=lambda record: record.offset)]

    def corrupt(self, offset: int) -> None:
        """Damage the record at an offset."""
        self.records = [
            replace(record, is_corrupt=True) if record.offset == offset else record
            for record in self.records
        ]

    def compact(self) -> None:
        """Keep the newest record of each key, as the log cleaner does; offsets stay."""
        newest = {record.key: record.offset for record in self.records}
        self.records = [
            record
            for record in self.records
            if record.key is None or newest[record.key] == record.offset
        ]

    def visible(self, start: int, end: int, *, committed_only: bool) -> Iterator[StoredRecord]:
        """Yield the visible records of ``[start, end)``."""
        first = bisect_left(self.records, start, key=lambda record: record.offset)
        for record in self.records[first:]:
            if record.offset >= end:
                return
            if not (committed_only and record.transaction in self.aborted):
                yield record

    def offset_for_timestamp(self, timestamp: int) -> int | None:
        """Return the first offset with a record at or after ``timestamp``."""
        return next(
            (record.offset for record in self.records if record.timestamp >= timestamp), None
        )
