"""Records of a client's public API as an Arrow batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, final

import pyarrow as pa

from ...domain.reading.errors import MalformedTimestampError, OversizedRecordError
from ...domain.reading.record_limits import OversizedRecords, RecordLimits
from ...ports.record_schema import HEADERS, TYPES, record_schema
from .status import MAX_MILLISECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...domain.reading.records import Projection
    from ...domain.topic_partition import TopicPartition

    Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

_ATTRIBUTES: Final = {
    "key": "keys",
    "value": "values",
    "offset": "offsets",
    "timestampType": "timestamp_types",
}


class ClientRecord(Protocol):
    """A record of a client; ``timestamp`` is in milliseconds since the epoch."""

    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def timestamp_type(self) -> int: ...


@final
@dataclass(frozen=True, slots=True)
class RecordColumns:
    """The columns of some records of one partition, in order."""

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    offsets: Sequence[int]
    timestamps: Sequence[int]
    timestamp_types: Sequence[int]
    headers: Sequence[Headers | None]

    @classmethod
    def of(cls, records: Iterable[ClientRecord]) -> RecordColumns:
        """Take the columns of records."""
        rows = list(records)
        return cls(
            keys=[row.key for row in rows],
            values=[row.value for row in rows],
            offsets=[row.offset for row in rows],
            timestamps=[row.timestamp for row in rows],
            timestamp_types=[row.timestamp_type for row in rows],
            headers=[row.headers for row in rows],
        )

    def to_record_batch(self, partition: TopicPartition, projection: Projection) -> pa.RecordBatch:
        """Return the projected columns.

        :raises MalformedTimestampError: if ``timestamp`` is projected and one does not fit.
        """
        return pa.RecordBatch.from_arrays(
            [self._column(name, partition) for name in projection.columns],
            schema=record_schema(projection),
        )

    def _column(self, name: str, partition: TopicPartition) -> pa.Array[Any]:
        match name:
            case "timestamp":
                return self._timestamps(partition)
            case "headers":
                return self._headers()
            case "topic":
                values: Sequence[Any] = [partition.topic] * len(self.offsets)
            case "partition":
                values = [partition.partition] * len(self.offsets)
            case _:
                values = getattr(self, _ATTRIBUTES[name])
        return pa.array(values, TYPES[name])

    def _timestamps(self, partition: TopicPartition) -> pa.Array[Any]:
        for offset, milliseconds in zip(self.offsets, self.timestamps, strict=True):
            if not _fits(milliseconds):
                raise MalformedTimestampError(partition, offset, milliseconds)
        return pa.array(self.timestamps, pa.timestamp("ms", "UTC")).cast(TYPES["timestamp"])

    def _headers(self) -> pa.Array[Any]:
        # Null for a record without headers, as in the JVM connector's rows.
        return pa.array(
            [
                [{"key": key, "value": value} for key, value in headers] if headers else None
                for headers in self.headers
            ],
            HEADERS,
        )


def record_batches(
    records: Sequence[ClientRecord],
    partition: TopicPartition,
    projection: Projection,
    oversized: OversizedRecords | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield records of one partition as a batch, or none if there are none.

    Without ``oversized``, records beyond the default limits are errors. The records before an error
    are yielded first.

    :raises MalformedTimestampError: if ``timestamp`` is projected and one does not fit.
    :raises OversizedRecordError: if a record exceeds a limit, and such are not skipped.
    """
    oversized = OversizedRecords(RecordLimits()) if oversized is None else oversized
    good, error = readable(records, partition, projection, oversized)
    if good:
        yield RecordColumns.of(good).to_record_batch(partition, projection)
    if error is not None:
        raise error


def readable(
    records: Iterable[ClientRecord],
    partition: TopicPartition,
    projection: Projection,
    oversized: OversizedRecords,
) -> tuple[list[ClientRecord], MalformedTimestampError | OversizedRecordError | None]:
    """Return the records before the first that cannot be read, and its error.

    Skipped records are left out.
    """
    good: list[ClientRecord] = []
    for record in records:
        exceeded = _exceeded(record, projection, oversized)
        if exceeded is not None:
            option, size = exceeded
            if not oversized.limits.skips:
                return good, oversized.error(partition, record.offset, option, size)
            oversized.skip(partition, record.offset, option)
        elif "timestamp" in projection and not _fits(record.timestamp):
            return good, MalformedTimestampError(partition, record.offset, record.timestamp)
        else:
            good.append(record)
    return good, None


def _exceeded(
    record: ClientRecord, projection: Projection, oversized: OversizedRecords
) -> tuple[str, int] | None:
    headers = record.headers if "headers" in projection else ()
    header_bytes = sum(len(key.encode()) + len(value or b"") for key, value in headers or ())
    payload = len(record.key or b"") + len(record.value or b"")
    return oversized.limits.exceeded(payload, len(headers or ()), header_bytes)


def _fits(milliseconds: int) -> bool:
    return -MAX_MILLISECONDS <= milliseconds <= MAX_MILLISECONDS
