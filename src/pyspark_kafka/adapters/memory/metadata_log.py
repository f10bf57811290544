"""A metadata log in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import final

from ...ports.checkpoints import EditableLog


@final
class MemoryMetadataLog(EditableLog):
    """Batches in a dictionary of this object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batches: dict[int, bytes] = {}

    def __str__(self) -> str:
        return "a metadata log in memory"

    def add(self, batch_id: int, metadata: bytes) -> bool:
        with self._lock:
            if batch_id in self._batches:
                return False
            self._batches[batch_id] = bytes(metadata)
            return True

    def get(self, batch_id: int) -> bytes | None:
        with self._lock:
            return self._batches.get(batch_id)

    def latest(self) -> tuple[int, bytes] | None:
        with self._lock:
            return max(self._batches.items(), default=None)

    def batch_ids(self) -> Sequence[int]:
        with self._lock:
            return sorted(self._batches)

    def purge(self, threshold: int) -> None:
        with self._lock:
            self._batches = {
                batch_id: metadata
                for batch_id, metadata in self._batches.items()
                if batch_id >= threshold
            }

    def replace(self, batch_id: int, metadata: bytes) -> None:
        with self._lock:
            self._batches[batch_id] = bytes(metadata)

    def remove(self, batch_id: int) -> None:
        with self._lock:
            self._batches.pop(batch_id, None)
