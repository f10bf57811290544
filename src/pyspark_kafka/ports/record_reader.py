"""The need to read a stretch of a partition as Arrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ..domain.offset_range import OffsetRange
    from ..domain.projection import Projection


class RecordReader(ABC):
    """Reads the visible records of offset ranges, one range at a time."""

    @abstractmethod
    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        """Read the records of a bound range, in order, each once.

        The batches have the schema of ``record_schema(projection)``, at least one row each, and
        belong to the caller. Offsets without a visible record (control batches, aborted
        transactions under ``read_committed``, what compaction removed) are passed over silently.
        At any time no more is held in memory than a few fetches, whatever the range. The iterator
        may be closed or dropped at any time; the reader can then read another range.

        Blocks up to the option ``kafkaConsumer.pollTimeoutMs`` for a record or for progress. An
        empty answer of a broker, or one of a replica that lags, never ends a range.

        :raises OffsetOutOfRangeError: if the broker does not hold the next offset to read. What
            was read before it has been handed out.
        :raises MissingOffsetsError: if the log's start moved past offsets of the range while it
            was read. What was read before it has been handed out.
        :raises FetchTimeoutError: if the broker holds the next offset and nothing comes.
        :raises MalformedTimestampError: if ``timestamp`` is projected and does not fit.
        :raises BrokerUnreachableError: if no broker answers.
        :raises CorruptBatchError: if bytes of the log are not what Kafka writes. What stands
            before them has been handed out.
        :raises KafkaRequestError: if a broker answers with an error that no retry mends.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back connections and threads. A second call does nothing."""
