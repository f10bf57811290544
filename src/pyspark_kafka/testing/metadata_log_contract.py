"""The contract suite of ``MetadataLog``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Final

import pytest

from ..domain.errors import MetadataLogError
from ..ports.checkpoints import EditableLog, MetadataLog
from .fixtures import required_fixture

_WRITERS: Final = 50
_OFFSETS: Final = b'\x00v1\n{"orders":{"0":23}}'


class MetadataLogContract:
    """The contract of ``MetadataLog``.

    A subclass overrides the fixture ``log`` with an empty log, and ``again`` with a second log at
    the same path, as another process would open it; if that is impossible, with the same log. It
    may override ``failing`` and ``secrets``, too.
    """

    log = required_fixture("Return an empty log at a path that is not used elsewhere.")
    again = required_fixture("Return another log at the same path.")

    @pytest.fixture
    def failing(self) -> MetadataLog:
        """Return a log whose storage fails or refuses access; otherwise such tests are skipped."""
        pytest.skip(f"{type(self).__name__} does not override the fixture 'failing'")

    @pytest.fixture
    def secrets(self) -> Sequence[str]:
        """Return the credentials that ``log`` was made with."""
        return ()

    @pytest.mark.parametrize(
        "metadata", [_OFFSETS, b"", b" \n", bytes(range(256)), b"x" * 3_000_000]
    )
    def test_what_was_added_is_returned(self, log: MetadataLog, metadata: bytes) -> None:
        """The bytes of a batch are returned unchanged."""
        assert log.add(0, metadata)
        assert log.get(0) == metadata

    def test_an_empty_log_has_nothing(self, log: MetadataLog) -> None:
        """An empty log returns no batches, and raises no error."""
        assert log.get(0) is None
        assert log.latest() is None
        assert list(log.batch_ids()) == []
        log.purge(10)

    def test_a_batch_is_written_once(self, log: MetadataLog, again: MetadataLog) -> None:
        """A second write returns ``False`` in every log at the path, and changes nothing."""
        assert log.add(3, b"first")
        assert not log.add(3, b"second")
        assert not again.add(3, b"third")
        assert log.get(3) == again.get(3) == b"first"
        assert log.latest() == again.latest() == (3, b"first")

    def test_another_log_sees_what_was_added(self, log: MetadataLog, again: MetadataLog) -> None:
        """A listing by one log does not hide entries that another log adds later."""
        for batch_id, (writer, reader) in enumerate([(log, again), (again, log)] * 2):
            assert reader.get(batch_id) is None
            assert writer.add(batch_id, b"%d" % batch_id)
            assert reader.get(batch_id) == b"%d" % batch_id
            assert reader.latest() == (batch_id, b"%d" % batch_id)

    def test_another_log_sees_what_was_purged(self, log: MetadataLog, again: MetadataLog) -> None:
        """A returned entry is gone when another log deletes it, whichever log added it."""
        for batch_id in range(4):
            log.add(batch_id, b"%d" % batch_id)
        for purger, reader, first in ((log, again, 1), (again, log, 3)):
            assert reader.get(first - 1) == b"%d" % (first - 1)
            assert min(reader.batch_ids()) < first
            purger.purge(first)
            assert reader.get(first - 1) is None
            assert list(reader.batch_ids()) == list(range(first, 4))
            assert reader.latest() == (3, b"3")

    def test_the_highest_batch_may_be_purged(self, log: MetadataLog, again: MetadataLog) -> None:
        """A log whose batches are all purged is empty."""
        for batch_id in (3, 5):
            log.add(batch_id, b"x")
        log.purge(6)
        for each in (log, again):
            assert (each.latest(), list(each.batch_ids())) == (None, [])

    def test_the_latest_batch_is_the_highest(self, log: MetadataLog) -> None:
        """Batches are ordered by number, neither by time nor as strings."""
        for batch_id in (9, 10, 2):
            log.add(batch_id, b"%d" % batch_id)
        assert log.latest() == (10, b"10")
        assert list(log.batch_ids()) == [2, 9, 10]

    def test_the_highest_batch_of_all_is_kept(self, log: MetadataLog) -> None:
        """A batch id may be any non-negative 64-bit integer."""
        assert log.add(2**63 - 1, b"last")
        assert log.latest() == (2**63 - 1, b"last")

    def test_purging_keeps_the_threshold_and_later_batches(self, log: MetadataLog) -> None:
        """Batches below the threshold are gone, and a second purge changes nothing."""
        for batch_id in range(5):
            log.add(batch_id, b"x")
        for _ in range(2):
            log.purge(3)
            assert list(log.batch_ids()) == [3, 4]
            assert [log.get(batch_id) for batch_id in range(5)] == [None] * 3 + [b"x"] * 2

    def test_a_purged_batch_can_be_written_again(self, log: MetadataLog) -> None:
        """A purged batch does not block a new one."""
        log.add(0, b"before")
        log.purge(1)
        assert log.add(0, b"after")
        assert log.get(0) == b"after"

    def test_concurrent_purges(self, log: MetadataLog, again: MetadataLog) -> None:
        """Two logs can purge at the same time."""
        for batch_id in range(15):
            log.add(batch_id, b"x")
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda each: each.purge(10), (log, again)))
        assert list(log.batch_ids()) == list(range(10, 15))

    def test_one_of_many_writers_wins(self, log: MetadataLog, again: MetadataLog) -> None:
        """Exactly one of a batch's concurrent writers gets ``True``."""
        ready = Barrier(_WRITERS)

        def write(number: int) -> bool:
            ready.wait()
            return (log, again)[number % 2].add(0, b"%d" % number)

        with ThreadPoolExecutor(_WRITERS) as pool:
            won = list(pool.map(write, range(_WRITERS)))
        assert won.count(True) == 1
        assert log.get(0) == again.get(0) == b"%d" % won.index(True)

    def test_a_batch_is_read_completely_or_not_at_all(
        self, log: MetadataLog, again: MetadataLog
    ) -> None:
        """Reading during a write returns nothing, or the complete batch."""
        metadata = b"x" * 300_000
        with ThreadPoolExecutor(1) as pool:
            for batch_id in range(5):
                adding = pool.submit(log.add, batch_id, metadata)
                found = [again.get(batch_id)]
                while not adding.done():
                    found.append(again.get(batch_id))
                assert adding.result()
                assert set(found) <= {None, metadata}

    def test_the_latest_batch_while_others_are_added_and_purged(
        self, log: MetadataLog, again: MetadataLog
    ) -> None:
        """A batch that is deleted between listing and reading is skipped."""

        def move_on() -> None:
            for batch_id in range(15):
                log.add(batch_id, b"%d" % batch_id)
                log.purge(batch_id)

        with ThreadPoolExecutor(1) as pool:
            moving = pool.submit(move_on)
            while not moving.done():
                latest = again.latest()
                assert latest is None or latest[1] == b"%d" % latest[0]
            moving.result()
        assert again.latest() == (14, b"14")

    def test_its_string_is_its_path(self, log: MetadataLog, secrets: Sequence[str]) -> None:
        """The string of a log identifies it in messages, without credentials."""
        [line] = str(log).splitlines()
        assert line.strip()
        assert not [secret for secret in secrets if secret in f"{log} {log!r}"]

    @pytest.mark.parametrize("name", ["add", "get", "latest", "batch_ids", "purge"])
    def test_a_storage_that_fails_is_an_error(
        self, failing: MetadataLog, secrets: Sequence[str], name: str
    ) -> None:
        """A failure is never an empty log, and its message has no credentials."""
        calls: dict[str, Callable[[], object]] = {
            "add": lambda: failing.add(0, b"x"),
            "get": lambda: failing.get(0),
            "latest": failing.latest,
            "batch_ids": failing.batch_ids,
            "purge": lambda: failing.purge(1),
        }
        with pytest.raises(MetadataLogError) as caught:
            calls[name]()
        assert not [secret for secret in secrets if secret in str(caught.value)]


_OLD: Final = b"old" * 100_000
_NEW: Final = b"new" * 100_000
_ROUNDS: Final = 10


class EditableLogContract(MetadataLogContract):
    """The contract of ``EditableLog``: of ``MetadataLog``, and of changing entries.

    A subclass overrides the same fixtures.
    """

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
