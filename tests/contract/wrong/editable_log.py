import time
from typing import Final

import pytest

from pyspark_kafka.ports.checkpoints import EditableLog
from pyspark_kafka.testing import EditableLogContract as Suite

from .adapter import Faults
from .metadata_log import Storage, Stored


class Edited(Stored, EditableLog):
    """Replaces and removes the entries that several logs share."""

    def replace(self, batch_id: int, metadata: bytes) -> None:
        self.entries[batch_id] = metadata

    def remove(self, batch_id: int) -> None:
        self.entries.pop(batch_id, None)


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


wrong: Final = Faults(Edited, _suite)


@wrong(Suite.test_a_replaced_entry, "replace")
def writes_an_entry_only_if_there_is_none(self, batch_id, metadata):
    self.add(batch_id, metadata)


@wrong(Suite.test_an_entry_that_did_not_exist, "replace")
def writes_no_entry_that_is_not_there(self, batch_id, metadata):
    if batch_id in self.entries:
        Edited.replace(self, batch_id, metadata)


@wrong(Suite.test_readers_see_one_or_the_other, "replace")
def removes_the_old_entry_before_it_writes_the_new_one(self, batch_id, metadata):
    self.remove(batch_id)
    time.sleep(0.01)
    self.add(batch_id, metadata)


@wrong(Suite.test_a_removed_entry, "remove")
def keeps_an_entry_that_is_to_be_removed(self, batch_id):
    pass


@wrong(Suite.test_a_storage_that_cannot_be_changed, "replace")
def raises_no_error_if_the_storage_fails(self, batch_id, metadata):
    if not self.storage.fails:
        Edited.replace(self, batch_id, metadata)
