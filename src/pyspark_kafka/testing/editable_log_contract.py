"""The contract suite of ``EditableLog``."""

from __future__ import annotations

import threading
from typing import Final

import pytest

from ..domain.errors import MetadataLogError
from ..ports.checkpoints import EditableLog
from .metadata_log_contract import MetadataLogContract

_OLD: Final = b"old" * 100_000
_NEW: Final = b"new" * 100_000
_ROUNDS: Final = 10


class EditableLogContract(MetadataLogContract):
    """The contract of ``EditableLog``: of ``MetadataLog``, and of changing entries.

    A subclass overrides the same fixtures.
    """

    @pytest.fixture
    def log(self) -> EditableLog:
        """Return an empty log at a path that is not used elsewhere."""
        raise NotImplementedError(f"{type(self).__name__} must override the fixture 'log'")

    @pytest.fixture
    def again(self, log: EditableLog) -> EditableLog:
        """Return another log at the same path."""
        raise NotImplementedError(f"{type(self).__name__} must override the fixture 'again'")

    @pytest.fixture
    def failing(self) -> EditableLog:
        """Return a log whose storage fails or refuses access; otherwise such tests are skipped."""
        pytest.skip(f"{type(self).__name__} does not override the fixture 'failing'")

    def test_a_replaced_entry(self, log: EditableLog, again: EditableLog) -> None:
        """Every log at the path returns the new entry, and there are no further ones."""
        for batch_id in range(3):
            assert log.add(batch_id, b"old")
        log.replace(1, b"new and longer")
        log.replace(2, b"")
        for each in (log, again):
            assert [each.get(batch_id) for batch_id in range(3)] == [b"old", b"new and longer", b""]
            assert list(each.batch_ids()) == [0, 1, 2]
            assert each.latest() == (2, b"")

    def test_an_entry_that_did_not_exist(self, log: EditableLog, again: EditableLog) -> None:
        """Replacing writes an entry that is not there."""
        log.replace(4, b"new")
        assert again.get(4) == b"new"
        assert not again.add(4, b"other")

    def test_a_removed_entry(self, log: EditableLog, again: EditableLog) -> None:
        """An entry that was removed is gone, and can be added again."""
        for batch_id in range(2):
            assert log.add(batch_id, b"old")
        log.remove(1)
        log.remove(1)
        assert again.get(1) is None
        assert log.latest() == again.latest() == (0, b"old")
        assert again.add(1, b"new")
        assert log.get(1) == b"new"

    def test_readers_see_one_or_the_other(self, log: EditableLog, again: EditableLog) -> None:
        """A reader never gets a part of an entry, and never none."""
        assert log.add(0, _OLD)
        seen: set[bytes | None] = set()
        ended = threading.Event()

        def read() -> None:
            while not ended.is_set():
                seen.add(again.get(0))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for _ in range(_ROUNDS):
                log.replace(0, _NEW)
                log.replace(0, _OLD)
        finally:
            ended.set()
            reader.join()
        assert seen <= {_OLD, _NEW}

    def test_a_storage_that_cannot_be_changed(self, failing: EditableLog) -> None:
        """A storage that fails raises the error of a log."""
        with pytest.raises(MetadataLogError):
            failing.replace(0, b"new")
