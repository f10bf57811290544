"""Logs that break a promise of ``MetadataLog``."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.ports.checkpoints import MetadataLog
from pyspark_kafka.testing import MetadataLogContract as Suite

from .adapter import PortFaults, wrong_with

if TYPE_CHECKING:
    from collections.abc import Sequence

SECRET: Final = "not-to-be-seen"  # noqa: S105


@dataclass
class Storage:
    """Entries, in the order in which they were added."""

    fails: bool = False
    entries: dict[int, bytes] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Stored(MetadataLog):
    """Keeps entries in a storage that several logs share."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def __str__(self) -> str:
        return "a log in memory"

    @property
    def entries(self) -> dict[int, bytes]:
        """The entries; every method looks at them."""
        if self.storage.fails:
            raise MetadataLogError(str(self), "The storage fails")
        return self.storage.entries

    def add(self, batch_id: int, metadata: bytes) -> bool:
        with self.storage.lock:
            if batch_id in self.entries:
                return False
            self.entries[batch_id] = metadata
            return True

    def get(self, batch_id: int) -> bytes | None:
        return self.entries.get(batch_id)

    def latest(self) -> tuple[int, bytes] | None:
        with self.storage.lock:
            return max(self.entries.items(), default=None)

    def batch_ids(self) -> Sequence[int]:
        with self.storage.lock:
            return sorted(self.entries)

    def purge(self, threshold: int) -> None:
        for batch_id in self.batch_ids():
            if batch_id < threshold:
                self.entries.pop(batch_id, None)


class Overwrites(Stored):
    """Replaces an entry, and returns ``True``."""

    def add(self, batch_id: int, metadata: bytes) -> bool:
        self.entries[batch_id] = metadata
        return True


class OverwritesSilently(Stored):
    """Replaces an entry, and returns ``False``."""

    def add(self, batch_id: int, metadata: bytes) -> bool:
        is_new = batch_id not in self.entries
        self.entries[batch_id] = metadata
        return is_new


class ClaimsToWrite(Stored):
    """Returns ``True`` even if there is an entry."""

    def add(self, batch_id: int, metadata: bytes) -> bool:
        super().add(batch_id, metadata)
        return True


class LooksBeforeItWrites(Stored):
    """Writes later than it looks for another writer's entry."""

    def add(self, batch_id: int, metadata: bytes) -> bool:
        if batch_id in self.entries:
            return False
        time.sleep(0.01)
        self.entries[batch_id] = metadata
        return True


class WritesInParts(Stored):
    """Shows the first half of an entry before the second."""

    def add(self, batch_id: int, metadata: bytes) -> bool:
        if not super().add(batch_id, metadata[: len(metadata) // 2]):
            return False
        time.sleep(0.01)
        self.entries[batch_id] = metadata
        return True


class LosesEntries(Stored):
    """Keeps its entries to itself, until it is closed."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(Storage(storage.fails))


class RemembersWhatIsMissing(Stored):
    """Does not look again for an entry that it did not find."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._missing: set[int] = set()

    def get(self, batch_id: int) -> bytes | None:
        if batch_id not in self.entries:
            self._missing.add(batch_id)
        return None if batch_id in self._missing else self.entries[batch_id]


class RemembersEntries(Stored):
    """Returns an entry that it has read, even if it is deleted."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._read: dict[int, bytes] = {}

    def get(self, batch_id: int) -> bytes | None:
        found = self.entries.get(batch_id)
        if found is not None:
            self._read[batch_id] = found
        return self._read.get(batch_id)


class ListsOnce(Stored):
    """Returns its first listing again."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._listing: Sequence[int] | None = None

    def batch_ids(self) -> Sequence[int]:
        if self._listing is None:
            self._listing = super().batch_ids()
        return self._listing


class ListsGaps(Stored):
    """Lists every number up to the highest batch id."""

    def batch_ids(self) -> Sequence[int]:
        return range(max(self.entries, default=-1) + 1)


class ListsAsAdded(Stored):
    """Lists the batches in the order in which they were added."""

    def batch_ids(self) -> Sequence[int]:
        return list(self.entries)


class LatestIsNewest(Stored):
    """Returns the entry that was added last, and not the one with the highest batch id."""

    def latest(self) -> tuple[int, bytes] | None:
        return next(reversed(self.entries.items()), None)


class OrdersAsText(Stored):
    """Takes batch 9 for a later one than batch 10."""

    def latest(self) -> tuple[int, bytes] | None:
        return max(self.entries.items(), key=lambda entry: str(entry[0]), default=None)


class LatestOfNothing(Stored):
    """Fails to find the latest entry of an empty log."""

    def latest(self) -> tuple[int, bytes] | None:
        return max(self.entries.items())


class LatestAfterListing(Stored):
    """Fails if the latest entry is deleted between its listing and its reading."""

    def add(self, batch_id: int, metadata: bytes) -> bool:
        time.sleep(0.002)
        return super().add(batch_id, metadata)

    def latest(self) -> tuple[int, bytes] | None:
        batch_ids = self.batch_ids()
        time.sleep(0.01)
        return (batch_ids[-1], self.entries[batch_ids[-1]]) if batch_ids else None


class Strips(Stored):
    """Strips the white space of an entry."""

    def add(self, batch_id: int, metadata: bytes) -> bool:
        return super().add(batch_id, metadata.strip())


class Decodes(Stored):
    """Takes an entry for text."""

    def add(self, batch_id: int, metadata: bytes) -> bool:
        return super().add(batch_id, metadata.decode(errors="replace").encode())


class SmallIds(Stored):
    """Keeps 32 bits of a batch id."""

    def add(self, batch_id: int, metadata: bytes) -> bool:
        return super().add(batch_id & 0x7FFF_FFFF, metadata)


class PurgesNothing(Stored):
    """Deletes nothing."""

    def purge(self, threshold: int) -> None:
        pass


class PurgesThreshold(Stored):
    """Deletes the batch at the threshold, too."""

    def purge(self, threshold: int) -> None:
        super().purge(threshold + 1)


class PurgesOne(Stored):
    """Deletes the batch before the threshold only."""

    def purge(self, threshold: int) -> None:
        self.entries.pop(threshold - 1, None)


class PurgesAllButLatest(Stored):
    """Never deletes the latest batch."""

    def purge(self, threshold: int) -> None:
        super().purge(min(threshold, max(self.entries, default=0)))


class PurgesItsOwn(Stored):
    """Deletes only what it has added itself."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._added: set[int] = set()

    def add(self, batch_id: int, metadata: bytes) -> bool:
        self._added.add(batch_id)
        return super().add(batch_id, metadata)

    def purge(self, threshold: int) -> None:
        for batch_id in self._added:
            if batch_id < threshold:
                self.entries.pop(batch_id, None)


class PurgesAlone(Stored):
    """Fails if another log deletes the same batches at the same time."""

    def purge(self, threshold: int) -> None:
        for batch_id in self.batch_ids():
            time.sleep(0.001)
            if batch_id < threshold:
                del self.entries[batch_id]


class PurgesOnce(Stored):
    """Fails to delete what is deleted already."""

    def purge(self, threshold: int) -> None:
        if not any(batch_id < threshold for batch_id in self.entries):
            raise MetadataLogError(str(self), "There is nothing to delete")
        super().purge(threshold)


class KeepsNumbers(Stored):
    """Takes no batch whose number was purged."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._purged = 0

    def add(self, batch_id: int, metadata: bytes) -> bool:
        return batch_id >= self._purged and super().add(batch_id, metadata)

    def purge(self, threshold: int) -> None:
        super().purge(threshold)
        self._purged = threshold


class EmptyIfItFails(Stored):
    """Takes a storage that fails for an empty one."""

    @property
    def entries(self) -> dict[int, bytes]:
        return self.storage.entries


class ShowsSecrets(Stored):
    """Shows its credentials."""

    def __str__(self) -> str:
        return f"https://user:{SECRET}@host/log"


class SeveralLines(Stored):
    """Describes itself on several lines."""

    def __str__(self) -> str:
        return "a log\nin memory"


def _suite(adapter: type[Stored]) -> type:
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

        @pytest.fixture
        def secrets(self):
            return (SECRET,)

    return Held


_wrong: Final = wrong_with(_suite)


FAULTS: Final = PortFaults(
    _suite(Stored),
    (
        *_wrong(Suite.test_a_batch_is_written_once, Overwrites),
        *_wrong(Suite.test_a_batch_is_written_once, OverwritesSilently),
        *_wrong(Suite.test_a_batch_is_written_once, ClaimsToWrite),
        *_wrong(Suite.test_one_of_many_writers_wins, LooksBeforeItWrites),
        *_wrong(Suite.test_a_batch_is_read_completely_or_not_at_all, WritesInParts),
        *_wrong(Suite.test_another_log_sees_what_was_added, LosesEntries),
        *_wrong(Suite.test_another_log_sees_what_was_added, RemembersWhatIsMissing),
        *_wrong(Suite.test_another_log_sees_what_was_purged, RemembersEntries),
        *_wrong(Suite.test_another_log_sees_what_was_purged, ListsOnce),
        *_wrong(Suite.test_the_latest_batch_is_the_highest, ListsGaps),
        *_wrong(Suite.test_the_latest_batch_is_the_highest, ListsAsAdded),
        *_wrong(Suite.test_the_latest_batch_is_the_highest, LatestIsNewest),
        *_wrong(Suite.test_the_latest_batch_is_the_highest, OrdersAsText),
        *_wrong(Suite.test_an_empty_log_has_nothing, LatestOfNothing),
        *_wrong(Suite.test_the_latest_batch_while_others_are_added_and_purged, LatestAfterListing),
        *_wrong(Suite.test_what_was_added_is_returned, Strips),
        *_wrong(Suite.test_what_was_added_is_returned, Decodes),
        *_wrong(Suite.test_the_highest_batch_of_all_is_kept, SmallIds),
        *_wrong(Suite.test_purging_keeps_the_threshold_and_later_batches, PurgesNothing),
        *_wrong(Suite.test_purging_keeps_the_threshold_and_later_batches, PurgesThreshold),
        *_wrong(Suite.test_purging_keeps_the_threshold_and_later_batches, PurgesOne),
        *_wrong(Suite.test_the_highest_batch_may_be_purged, PurgesAllButLatest),
        *_wrong(Suite.test_another_log_sees_what_was_purged, PurgesItsOwn),
        *_wrong(Suite.test_concurrent_purges, PurgesAlone),
        *_wrong(Suite.test_purging_keeps_the_threshold_and_later_batches, PurgesOnce),
        *_wrong(Suite.test_a_purged_batch_can_be_written_again, KeepsNumbers),
        *_wrong(Suite.test_a_storage_that_fails_is_an_error, EmptyIfItFails),
        *_wrong(Suite.test_its_string_is_its_path, ShowsSecrets),
        *_wrong(Suite.test_its_string_is_its_path, SeveralLines),
    ),
)
