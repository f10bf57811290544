"""A record batch on its way to a partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar, final

from .producer_id import next_sequence

if TYPE_CHECKING:
    from ..topic_partition import TopicPartition


class Records(Protocol):
    """The records of a batch, from which it can be encoded again."""

    @property
    def payload_bytes(self) -> int:
        """The bytes of all keys, values and headers."""

    def __len__(self) -> int: ...

    def first_record_bytes(self) -> int:
        """Return ``payload_bytes`` of the first record."""

    def halves(self) -> tuple[Self, Self]:
        """Return the first and the second half, for two records or more."""


R = TypeVar("R", bound=Records)


@final
@dataclass(slots=True, eq=False)
class ProducerBatch(Generic[R]):
    """Records with their sequence numbers, encoded or about to be."""

    partition: TopicPartition
    records: R
    sequence: int = 0
    encoded: bytes = b""

    @property
    def next_sequence(self) -> int:
        """The sequence number of the record after the last."""
        return next_sequence(self.sequence, len(self.records))

    @property
    def memory(self) -> int:
        """The bytes that it holds, its share of the rows included."""
        return len(self.encoded) + self.records.payload_bytes

    def split(self) -> tuple[ProducerBatch[R], ProducerBatch[R]]:
        """Return two batches of half the records, with the same sequence numbers."""
        first, second = self.records.halves()
        one = ProducerBatch(self.partition, first, self.sequence)
        return one, ProducerBatch(self.partition, second, one.next_sequence)
