"""Records of a client's public API as an Arrow batch."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, final

import pyarrow as pa

from ...domain.errors import MalformedTimestampError
from ...ports.record_schema import HEADERS, TYPES, record_schema
from .status import MAX_MILLISECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...domain.projection import Projection
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
    records: Sequence[ClientRecord], partition: TopicPartition, projection: Projection
) -> Iterator[pa.RecordBatch]:
    """Yield records of one partition as a batch, or none if there are none.

    :raises MalformedTimestampError: if ``timestamp`` is projected and one does not fit. The records
        before it are yielded first.
    """
    good = records
    if "timestamp" in projection:
        good = list(itertools.takewhile(lambda record: _fits(record.timestamp), records))
    if good:
        yield RecordColumns.of(good).to_record_batch(partition, projection)
    if len(good) < len(records):
        bad = records[len(good)]
        raise MalformedTimestampError(partition, bad.offset, bad.timestamp)


def _fits(milliseconds: int) -> bool:
    return -MAX_MILLISECONDS <= milliseconds <= MAX_MILLISECONDS
