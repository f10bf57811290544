"""Small Arrow batches, combined before they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...ports.record_schema import concatenated

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    Gathered: TypeAlias = tuple[pa.RecordBatch, str | None]

BYTES_PER_PARTITION: Final = 256 * 1024
FEW_BYTES: Final = 1024 * 1024
MANY_BYTES: Final = 16 * 1024 * 1024


@final
class BatchGatherer:
    """Combines batches of one schema and one topic option.

    A Kafka batch is of one partition, and an Arrow batch for many partitions has few rows for each:
    rows are gathered until each gets ``BYTES_PER_PARTITION``, within ``MANY_BYTES``. Up to
    ``FEW_BYTES`` this is not worth a delay.
    """

    def __init__(self, min_bytes: int = 0) -> None:
        self._min_bytes = self._enough_bytes = min_bytes
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._topic: str | None = None

    def add(self, batch: pa.RecordBatch, topic: str | None) -> Iterator[Gathered]:
        """Take a batch, and yield the batches to write now, each with its topic option."""
        if self._batches and (batch.schema != self._batches[0].schema or topic != self._topic):
            yield from self.take()
        self._batches.append(batch)
        self._topic = topic
        self._bytes += batch.nbytes
        if self._bytes >= self._enough_bytes:
            yield from self.take()

    def take(self) -> Iterator[Gathered]:
        """Yield the gathered rows as one batch."""
        batches, self._batches, self._bytes = self._batches, [], 0
        if batches:
            yield concatenated(batches) if len(batches) > 1 else batches[0], self._topic

    def adapt(self, groups: int) -> None:
        """Gather enough for as many partitions, or topics, as the last batch was for."""
        wanted = groups * BYTES_PER_PARTITION
        is_worth_it = wanted > FEW_BYTES
        self._enough_bytes = min(wanted, MANY_BYTES) if is_worth_it else self._min_bytes
