"""What every ``MetadataLog`` owes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from ..ports.metadata_log import MetadataLog

_WRITERS: Final = 50
_OFFSETS: Final = b'\x00v1\n{"orders":{"0":23}}'


class MetadataLogContract:
    """Holds a ``MetadataLog`` to its contract.

    A subclass gives an empty log in the fixture ``log``, and in ``again`` a second one of the same
    place, as another process would have it; that may be the first one, if a place has one log only.
    """

    @pytest.fixture
    def log(self) -> MetadataLog:
        """Give an empty log of a place that nobody else uses."""
        raise NotImplementedError(f"{type(self).__name__} is to override the fixture 'log'")

    @pytest.fixture
    def again(self, log: MetadataLog) -> MetadataLog:
        """Give another log of the same place."""
        raise NotImplementedError(f"{type(self).__name__} is to override the fixture 'again'")

    @pytest.mark.parametrize("metadata", [_OFFSETS, b"", bytes(range(256)), b"x" * 3_000_000])
    def test_what_was_added_is_given_back(self, log: MetadataLog, metadata: bytes) -> None:
        """A batch's bytes are given back as they were, whatever they are and however many."""
        assert log.add(0, metadata)
        assert log.get(0) == metadata

    def test_an_empty_log_has_nothing(self, log: MetadataLog) -> None:
        """What was never written is not there, and is no error."""
        assert log.get(0) is None
        assert log.latest() is None
        assert list(log.batch_ids()) == []
        log.purge(10)

    def test_a_batch_is_written_once(self, log: MetadataLog, again: MetadataLog) -> None:
        """Whoever comes second is told so, by any log of the place, and changes nothing."""
        assert log.add(3, b"first")
        assert not log.add(3, b"second")
        assert not again.add(3, b"first")
        assert again.get(3) == b"first"

    def test_another_log_sees_what_was_added(self, log: MetadataLog, again: MetadataLog) -> None:
        """What one log has listed does not hide what another adds after that."""
        for batch_id, (writer, reader) in enumerate([(log, again), (again, log)] * 2):
            assert reader.get(batch_id) is None
            assert writer.add(batch_id, b"%d" % batch_id)
            assert reader.get(batch_id) == b"%d" % batch_id
            assert reader.latest() == (batch_id, b"%d" % batch_id)

    def test_another_log_sees_what_was_purged(self, log: MetadataLog, again: MetadataLog) -> None:
        """What one log has listed does not bring back what another deletes after that."""
        log.add(0, b"old")
        log.add(1, b"new")
        assert list(again.batch_ids()) == [0, 1]
        log.purge(1)
        assert (again.get(0), again.latest(), list(again.batch_ids())) == (None, (1, b"new"), [1])

    def test_the_latest_batch_is_the_highest(self, log: MetadataLog) -> None:
        """Batches are ordered by number, not by when they were written or how they are spelled."""
        for batch_id in (9, 10, 2):
            log.add(batch_id, b"%d" % batch_id)
        assert log.latest() == (10, b"10")
        assert list(log.batch_ids()) == [2, 9, 10]

    def test_the_highest_batch_of_all_is_kept(self, log: MetadataLog) -> None:
        """A batch id is a long of the JVM, up to the last one."""
        assert log.add(2**63 - 1, b"last")
        assert log.latest() == (2**63 - 1, b"last")

    def test_purging_keeps_the_threshold_and_what_is_above(self, log: MetadataLog) -> None:
        """Batches below the threshold are gone, and a second purge changes nothing."""
        for batch_id in range(5):
            log.add(batch_id, b"x")
        for _ in range(2):
            log.purge(3)
            assert list(log.batch_ids()) == [3, 4]
            assert [log.get(batch_id) for batch_id in range(5)] == [None] * 3 + [b"x"] * 2

    def test_a_purged_batch_can_be_written_again(self, log: MetadataLog) -> None:
        """What is forgotten is no obstacle."""
        log.add(0, b"before")
        log.purge(1)
        assert log.add(0, b"after")
        assert log.get(0) == b"after"

    def test_purging_while_another_does(self, log: MetadataLog, again: MetadataLog) -> None:
        """Two that purge at once do not trip over each other."""
        for batch_id in range(15):
            log.add(batch_id, b"x")
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda each: each.purge(10), (log, again)))
        assert list(log.batch_ids()) == list(range(10, 15))

    def test_of_many_writers_one_wins(self, log: MetadataLog, again: MetadataLog) -> None:
        """Of concurrent writers of one batch exactly one is told that it was first."""
        ready = Barrier(_WRITERS)

        def write(number: int) -> bool:
            ready.wait()
            return (log, again)[number % 2].add(0, b"%d" % number)

        with ThreadPoolExecutor(_WRITERS) as pool:
            won = list(pool.map(write, range(_WRITERS)))
        assert won.count(True) == 1
        assert log.get(0) == again.get(0) == b"%d" % won.index(True)

    def test_a_batch_is_read_whole_or_not_at_all(
        self, log: MetadataLog, again: MetadataLog
    ) -> None:
        """Whoever looks while a batch is written finds nothing, or all of it."""
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
        """A batch that is deleted between the list and its reading is passed over."""

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

    def test_its_text_says_where_it_is(self, log: MetadataLog) -> None:
        """A log can be named in a message."""
        [line] = str(log).splitlines()
        assert line.strip()
