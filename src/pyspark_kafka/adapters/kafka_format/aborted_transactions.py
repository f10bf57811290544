"""The batches of a fetch that belong to aborted transactions."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, NamedTuple, final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .batch_headers import BatchHeader

ABORT: Final = 0
"""The type of a control record that ends an aborted transaction (``ControlRecordType``)."""


class AbortedTransaction(NamedTuple):
    """A transaction that a fetch response lists as aborted, from its first offset on."""

    first_offset: int
    producer_id: int


@final
class AbortedTransactions:
    """Tracks the aborted transactions of one fetch, as the Java client's ``CompletedFetch`` does.

    A broker sends the aborted transactions that overlap the fetched offsets. Each begins at its
    first offset and ends at its producer's next abort marker.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._pending = list(aborted)
        heapq.heapify(self._pending)
        self._open_producers: set[int] = set()

    def is_aborted(self, batch: BatchHeader) -> bool:
        """Take the next batch, in order of offsets; control batches are never aborted."""
        while self._pending and self._pending[0].first_offset <= batch.last_offset:
            self._open_producers.add(heapq.heappop(self._pending).producer_id)
        if batch.is_control:
            if batch.control_type == ABORT:
                self._open_producers.discard(batch.producer_id)
            return False
        return batch.is_transactional and batch.producer_id in self._open_producers
