"""The contract suite of ``MetadataLog``."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Final

import pytest

from ..ports.metadata_log import MetadataLog

_WRITERS: Final = 50
_OFFSETS: Final = b'\x00v1\n{"orders":{"0":23}}'


class MetadataLogContract:
    """The contract of ``MetadataLog``.

    A subclass overrides the fixture ``log`` with an empty log, and ``again`` with a second log at
    the same path, as another process would open it; if that is impossible, with the same log.
    """

    @pytest.fixture
    def log(self) -> MetadataLog:
        """Return an empty log at a path that is not used elsewhere."""
        raise NotImplementedError(f"{type(self).__name__} must override the fixture 'log'")

    @pytest.fixture
    def again(self, log: MetadataLog) -> MetadataLog:
        """Return another log at the same path."""
        raise NotImplementedError(f"{type(self).__name__} must override the fixture 'again'")

    @pytest.mark.parametrize("metadata", [_OFFSETS, b"", bytes(range(256)), b"x" * 3_000_000])
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
        assert not again.add(3, b"first")
        assert again.get(3) == b"first"

    def test_another_log_sees_what_was_added(self, log: MetadataLog, again: MetadataLog) -> None:
        """A listing by one log does not hide what another adds later."""
        for batch_id, (writer, reader) in enumerate([(log, again), (again, log)] * 2):
            assert reader.get(batch_id) is None
            assert writer.add(batch_id, b"%d" % batch_id)
            assert reader.get(batch_id) == b"%d" % batch_id
            assert reader.latest() == (batch_id, b"%d" % batch_id)

    def test_another_log_sees_what_was_purged(self, log: MetadataLog, again: MetadataLog) -> None:
        """A listing by one log does not keep what another deletes later."""
        log.add(0, b"old")
        log.add(1, b"new")
        assert list(again.batch_ids()) == [0, 1]
        log.purge(1)
        assert (again.get(0), again.latest(), list(again.batch_ids())) == (None, (1, b"new"), [1])

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
        """Of concurrent writers of a batch exactly one gets ``True``."""
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

    def test_its_string_is_its_path(self, log: MetadataLog) -> None:
        """The string of a log identifies it in messages."""
        [line] = str(log).splitlines()
        assert line.strip()
