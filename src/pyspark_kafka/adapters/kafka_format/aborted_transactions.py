"""Which batches belong to transactions that were aborted."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, NamedTuple, final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .batch_headers import BatchHeader

ABORT: Final = 0
"""The kind of a control record that ends an aborted transaction (``ControlRecordType``)."""


class AbortedTransaction(NamedTuple):
    """A transaction that a fetch says was aborted, by where its first record stands."""

    first_offset: int
    producer_id: int


@final
class AbortedTransactions:
    """Follows the transactions of one fetch, as the Java client's ``CompletedFetch`` does.

    A broker sends the aborted transactions that touch what was fetched. Each begins with its
    first offset, and ends with its producer's next abort marker.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = list(aborted)
        heapq.heapify(self._to_come)
        self._open: set[int] = set()

    def is_aborted(self, batch: BatchHeader) -> bool:
        """Take the next batch, in order of offsets; control batches are never aborted."""
        while self._to_come and self._to_come[0].first_offset <= batch.last_offset:
            self._open.add(heapq.heappop(self._to_come).producer_id)
        if batch.is_control:
            if batch.marker == ABORT:
                self._open.discard(batch.producer_id)
            return False
        return batch.is_transactional and batch.producer_id in self._open
