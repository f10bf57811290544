"""Reading offset ranges as Arrow record batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    import pyarrow as pa

    from ...domain.reading.data_loss import DataLoss
    from ...domain.reading.ranges import OffsetRange
    from ...domain.reading.records import Projection


class RecordReader(ABC):
    """Reads the visible records of offset ranges, one range at a time."""

    @abstractmethod
    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        """Yield the records of a bound range in order, each once.

        Each batch has the schema ``record_schema(projection)`` and at least one row, and belongs to
        the caller. Offsets without a visible record (control batches, aborted transactions under
        ``read_committed``, compacted records) are skipped. Memory is bounded by a few fetches,
        not by the size of the range. The iterator may be closed or dropped at any time; the
        reader can then read another range.

        Blocks for at most ``kafkaConsumer.pollTimeoutMs`` without progress. An empty response, or
        one of a replica that lags, never ends a range. Records before an error are yielded first.

        :raises OffsetOutOfRangeError: if the broker does not hold the next offset to read.
        :raises LogTruncatedError: if the log has other records than were read of the range.
        :raises TopicRecreatedError: if the topic was deleted and created again after a part of the
            range was read.
        :raises MissingOffsetsError: if offsets of the range were deleted while it was read.
        :raises UnknownTopicError: if the partition does not exist.
        :raises FetchTimeoutError: if the broker holds the next offset and does not return it.
        :raises MalformedTimestampError: if ``timestamp`` is projected and overflows.
        :raises BrokerUnreachableError: if no broker answers.
        :raises AuthenticationError: if a login is refused; it is not tried again.
        :raises TlsError: if a TLS handshake fails.
        :raises AuthorizationError: if the user may not read.
        :raises CorruptBatchError: if a record batch is corrupt.
        :raises OversizedRecordError: if a record exceeds a limit of the options, and
            ``skipOversizedRecords`` is false. A record before the range never does.
        :raises KafkaRequestError: if a broker refuses the request, and retries do not help.
        """

    def expect(self, ranges: Collection[OffsetRange]) -> None:  # noqa: B027  # it may be ignored
        """Take the bound ranges that ``read`` is called with next, in this order.

        A reader may fetch many of them by one request; it need not. Memory stays bounded. What is
        not read of them is forgotten with the next call.
        """

    def take_skipped(self) -> Iterable[DataLoss]:
        """Return reports of the records that were skipped since the last call."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Close connections and stop threads. A second call does nothing."""
