"""The need to write Arrow batches to topics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class RecordWriter(ABC):
    """Writes records and tells when all of them are safe."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        """Send the records of a batch.

        The batch may have the columns ``key``, ``value``, ``topic``, ``partition``, ``headers``
        and ``timestamp``; ``topic`` stands above the column. May block while buffers are full,
        and may return before the records are acknowledged.

        :raises UnknownTopicError: if a record's topic does not exist.
        :raises KafkaRequestError: if an earlier record could not be delivered.
        """

    @abstractmethod
    def flush(self) -> int:
        """Wait until every record is acknowledged, and give how many were since the last call.

        :raises KafkaRequestError: naming the first record that could not be delivered.
        :raises UnknownTopicError: if that is since its topic does not exist.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back connections and threads. A second call does nothing."""
