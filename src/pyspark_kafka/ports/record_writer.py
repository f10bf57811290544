"""The need to write Arrow batches to topics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from ..domain.transaction import Transaction
    from ..domain.write_result import DeliveryStats


class RecordWriter(ABC):
    """Writes records and tells when all of them are safe.

    After an error of ``write`` or ``flush`` the writer is to be closed. Every call may raise:

    :raises RecordDeliveryError: naming the first record that could not be delivered.
    :raises UnknownTopicError: if a record's topic does not exist.
    :raises BrokerUnreachableError: if no broker answers in time.
    :raises ProducerFencedError: if somebody else has taken the transaction's id.
    """

    @abstractmethod
    def join_transaction(self, transaction: Transaction) -> None:
        """Write into a transaction from now on, and until the next ``flush``.

        :raises UnsupportedFeatureError: if the client cannot write into what it did not begin.
        """

    @abstractmethod
    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        """Send the records of a batch.

        The batch may have the columns ``key``, ``value``, ``topic``, ``partition``, ``headers``
        and ``timestamp``; ``topic`` stands above the column. A record without a partition goes
        where its key goes, as in Kafka's Java client; one without a timestamp has that of now.
        May block while buffers are full, and may return before the records are acknowledged.

        :raises NullTopicError: if a record names no topic.
        """

    @abstractmethod
    def flush(self) -> DeliveryStats:
        """Wait until every record is acknowledged, and give what was since the last call."""

    @abstractmethod
    def close(self) -> None:
        """Give back connections and threads; what was not flushed may be lost.

        An enlisted transaction stays as it is. A second call does nothing.
        """
