"""Logs that break a promise of ``EditableLog``."""

from __future__ import annotations

import time
from typing import Final

import pytest

from pyspark_kafka.ports.checkpoints import EditableLog
from pyspark_kafka.testing import EditableLogContract as Suite

from .adapter import PortFaults, wrong_with
from .metadata_log import Storage, Stored


class Edited(Stored, EditableLog):
    """Replaces and removes the entries that several logs share."""

    def replace(self, batch_id: int, metadata: bytes) -> None:
        self.entries[batch_id] = metadata

    def remove(self, batch_id: int) -> None:
        self.entries.pop(batch_id, None)


class KeepsTheOldEntry(Edited):
    """Writes an entry only if there is none."""

    def replace(self, batch_id: int, metadata: bytes) -> None:
        self.add(batch_id, metadata)


class ReplacesOnly(Edited):
    """Writes no entry that is not there."""

    def replace(self, batch_id: int, metadata: bytes) -> None:
        if batch_id in self.entries:
            super().replace(batch_id, metadata)


class RemovesFirst(Edited):
    """Removes the old entry before it writes the new one."""

    def replace(self, batch_id: int, metadata: bytes) -> None:
        self.remove(batch_id)
        time.sleep(0.01)
        self.add(batch_id, metadata)


class ReplacesInParts(Edited):
    """Shows the first half of an entry before the second."""

    def replace(self, batch_id: int, metadata: bytes) -> None:
        super().replace(batch_id, metadata[: len(metadata) // 2])
        time.sleep(0.01)
        super().replace(batch_id, metadata)


class RemovesNothing(Edited):
    """Keeps an entry that is to be removed."""

    def remove(self, batch_id: int) -> None:
        pass


class RemovesOnce(Edited):
    """Fails to remove an entry that is not there."""

    def remove(self, batch_id: int) -> None:
        del self.entries[batch_id]


class FailsSilently(Edited):
    """Raises no error if the storage fails."""

    def replace(self, batch_id: int, metadata: bytes) -> None:
        if not self.storage.fails:
            super().replace(batch_id, metadata)


def _suite(adapter: type[Edited]) -> type:
    class Held(Suite):
        @pytest.fixture
        def log(self):
            return adapter(Storage())

        @pytest.fixture
        def again(self, log):
            return adapter(log.storage)

        @pytest.fixture
        def failing(self):
            return adapter(Storage(fails=True))

    return Held


_wrong: Final = wrong_with(_suite)


FAULTS: Final = PortFaults(
    _suite(Edited),
    (
        *_wrong(Suite.test_a_replaced_entry, KeepsTheOldEntry),
        *_wrong(Suite.test_an_entry_that_did_not_exist, ReplacesOnly),
        *_wrong(Suite.test_readers_see_one_or_the_other, RemovesFirst),
        *_wrong(Suite.test_readers_see_one_or_the_other, ReplacesInParts),
        *_wrong(Suite.test_a_removed_entry, RemovesNothing),
        *_wrong(Suite.test_a_removed_entry, RemovesOnce),
        *_wrong(Suite.test_a_storage_that_cannot_be_changed, FailsSilently),
    ),
)
