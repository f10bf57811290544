import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import pytest

from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.ports.checkpoints import MetadataLog
from pyspark_kafka.testing import MetadataLogContract as Suite

from .adapter import Faults

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


wrong: Final = Faults(Stored, _suite)


@wrong(Suite.test_a_batch_is_written_once, "add")
def overwrites(self, batch_id, metadata):
    """Replaces an entry, and returns ``True``."""
    self.entries[batch_id] = metadata
    return True


@wrong(Suite.test_one_of_many_writers_wins, "add")
def writes_later_than_it_looks_for_another_writers_entry(self, batch_id, metadata):
    if batch_id in self.entries:
        return False
    time.sleep(0.01)
    self.entries[batch_id] = metadata
    return True


@wrong(Suite.test_a_batch_is_read_completely_or_not_at_all, "add")
def shows_the_first_half_of_an_entry_before_the_second(self, batch_id, metadata):
    if not Stored.add(self, batch_id, metadata[: len(metadata) // 2]):
        return False
    time.sleep(0.01)
    self.entries[batch_id] = metadata
    return True


@wrong(Suite.test_another_log_sees_what_was_added, "__init__")
def keeps_its_entries_to_itself_until_it_is_closed(self, storage):
    Stored.__init__(self, Storage(storage.fails))


@wrong(Suite.test_another_log_sees_what_was_purged)
class RemembersEntries(Stored):
    """Returns an entry that it has read, even if it is deleted."""

    def __init__(self, storage):
        super().__init__(storage)
        self._read: dict[int, bytes] = {}

    def get(self, batch_id):
        found = self.entries.get(batch_id)
        if found is not None:
            self._read[batch_id] = found
        return self._read.get(batch_id)


@wrong(Suite.test_the_latest_batch_is_the_highest, "batch_ids")
def lists_every_number_up_to_the_highest_batch_id(self):
    return range(max(self.entries, default=-1) + 1)


@wrong(Suite.test_an_empty_log_has_nothing, "latest")
def fails_to_find_the_latest_entry_of_an_empty_log(self):
    return max(self.entries.items())


@wrong(Suite.test_the_latest_batch_while_others_are_added_and_purged)
class LatestAfterListing(Stored):
    """Fails if the latest entry is deleted between its listing and its reading."""

    def add(self, batch_id, metadata):
        time.sleep(0.002)
        return super().add(batch_id, metadata)

    def latest(self):
        batch_ids = self.batch_ids()
        time.sleep(0.01)
        return (batch_ids[-1], self.entries[batch_ids[-1]]) if batch_ids else None


@wrong(Suite.test_what_was_added_is_returned, "add")
def strips_the_white_space_of_an_entry(self, batch_id, metadata):
    return Stored.add(self, batch_id, metadata.strip())


@wrong(Suite.test_the_highest_batch_of_all_is_kept, "add")
def keeps_32_bits_of_a_batch_id(self, batch_id, metadata):
    return Stored.add(self, batch_id & 0x7FFF_FFFF, metadata)


@wrong(Suite.test_purging_keeps_the_threshold_and_later_batches, "purge")
def deletes_nothing(self, threshold):
    pass


@wrong(Suite.test_the_highest_batch_may_be_purged, "purge")
def never_deletes_the_latest_batch(self, threshold):
    Stored.purge(self, min(threshold, max(self.entries, default=0)))


@wrong(Suite.test_concurrent_purges, "purge")
def fails_if_another_log_deletes_the_same_batches_at_the_same_time(self, threshold):
    for batch_id in self.batch_ids():
        time.sleep(0.001)
        if batch_id < threshold:
            del self.entries[batch_id]


@wrong(Suite.test_a_purged_batch_can_be_written_again)
class KeepsNumbers(Stored):
    """Takes no batch whose number was purged."""

    def __init__(self, storage):
        super().__init__(storage)
        self._purged = 0

    def add(self, batch_id, metadata):
        return batch_id >= self._purged and super().add(batch_id, metadata)

    def purge(self, threshold):
        super().purge(threshold)
        self._purged = threshold


@wrong(Suite.test_a_storage_that_fails_is_an_error)
class EmptyIfItFails(Stored):
    """Takes a storage that fails for an empty one."""

    @property
    def entries(self):
        return self.storage.entries


@wrong(Suite.test_its_string_is_its_path, "__str__")
def shows_its_credentials(self):
    return f"https://user:{SECRET}@host/log"
