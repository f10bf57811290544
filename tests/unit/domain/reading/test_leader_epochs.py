from itertools import takewhile
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.reading.leader_epochs import NO_EPOCH, EpochEndOffset, FetchedEpochs


class Log(NamedTuple):
    """The epoch of each record, from offset 0 on, and the epoch of the leader that holds it."""

    epochs: tuple[int, ...]
    leader_epoch: int

    def end_offset(self, asked: int) -> EpochEndOffset:
        """Answer as ``LeaderEpochFileCache.endOffsetFor``."""
        epochs = [epoch for epoch in (*self.epochs, self.leader_epoch) if epoch <= asked]
        if not epochs:
            later = min(epoch for epoch in (*self.epochs, self.leader_epoch) if epoch > asked)
            return EpochEndOffset(asked, (*self.epochs, self.leader_epoch).index(later))
        end_offset = sum(epoch <= asked for epoch in self.epochs)
        return EpochEndOffset(max(epochs), end_offset)


@st.composite
def elections(draw: st.DrawFn) -> tuple[Log, Log]:
    """Return the log that is read, and a later leader's log: replicas of one partition.

    Each leader is any replica, appends under an epoch of its own, and some others copy its log.
    """
    replicas: list[tuple[int, ...]] = [()] * 3
    logs: list[Log] = []
    for epoch in range(draw(st.integers(1, 6))):
        leader = draw(st.integers(0, 2))
        log = Log(replicas[leader] + (epoch,) * draw(st.integers(0, 3)), epoch)
        logs.append(log)
        replicas[leader] = log.epochs
        for follower in draw(st.sets(st.integers(0, 2))):
            replicas[follower] = log.epochs
    read = draw(st.integers(0, len(logs) - 1))
    return logs[read], logs[draw(st.integers(read, len(logs) - 1))]


def read(log: Log, start: int, offset: int) -> FetchedEpochs:
    epochs = FetchedEpochs()
    for base_offset in range(start, offset):
        assert epochs.append(log.epochs[base_offset], base_offset) is None
    return epochs


def same_records(one: Log, other: Log) -> int:
    pairs = zip(one.epochs, other.epochs, strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


@given(elections(), st.data())
def test_a_later_leader_is_asked_until_its_records_are_the_same(logs, data):
    """Records are kept up to where the logs differ, and to no smaller offset.

    Only a log that ends an earlier epoch behind the offset may go undetected at first. The next
    batch shows it, if it is of that epoch.
    """
    old, new = logs
    offset = data.draw(st.integers(0, len(old.epochs)))
    start = data.draw(st.integers(0, offset))
    epochs = read(old, start, offset)
    same_until = offset
    while epochs.last != NO_EPOCH:
        found = new.end_offset(epochs.last)
        if epochs.confirm(found, same_until, new.leader_epoch):
            break
        same_until = epochs.truncate(found, same_until)
    expected = min(offset, same_records(old, new))
    if same_until == offset > expected:
        if start < offset < len(new.epochs):
            is_earlier = new.epochs[offset] < old.epochs[offset - 1]
            found_late = epochs.append(new.epochs[offset], offset)
            assert found_late == (max(start, expected) if is_earlier else None)
    else:
        # Of what was not read, nothing is known.
        assert expected <= same_until <= max(start, expected)


@given(elections(), st.data())
def test_the_same_log_is_never_taken_for_another(logs, data):
    old, new = logs
    offset = data.draw(st.integers(0, min(len(old.epochs), same_records(old, new))))
    epochs = read(old, 0, offset)
    if epochs.last != NO_EPOCH:
        assert epochs.confirm(new.end_offset(epochs.last), offset, new.leader_epoch)
        assert epochs.is_confirmed(new.leader_epoch)
        assert not epochs.is_confirmed(new.leader_epoch + 1)


@pytest.mark.parametrize(
    "found",
    [EpochEndOffset(-1, -1), EpochEndOffset(3, -1), EpochEndOffset(4, 10), EpochEndOffset(4, 11)],
)
def test_an_answer_that_tells_nothing_moves_no_offset(found):
    epochs = FetchedEpochs()
    assert epochs.append(5, 0) is None
    assert not epochs.confirm(found, 10, 7)
    assert epochs.truncate(found, 10) == 10
    assert epochs.last == NO_EPOCH
    assert epochs.is_confirmed(8)


@pytest.mark.parametrize(("epoch", "diverges_at"), [(4, 6), (3, 0), (5, None), (7, None)])
def test_the_next_batch_tells_what_an_answer_did_not(epoch, diverges_at):
    """Epochs never go back in one log; a later leader's epochs are expected."""
    epochs = FetchedEpochs()
    for read_epoch, offset in ((4, 0), (5, 6)):
        assert epochs.append(read_epoch, offset) is None
    assert epochs.truncate(EpochEndOffset(4, 12), 10) == 10
    assert epochs.append(epoch, 10) == diverges_at
    if diverges_at is None:
        assert epochs.last == epoch


def test_epochs_that_go_back_are_believed_unless_a_leader_was_in_doubt():
    """Servers that are not Kafka's may number them otherwise."""
    epochs = FetchedEpochs()
    assert epochs.append(5, 0) is None
    assert epochs.append(4, 6) is None
    assert epochs.last == 4


def test_a_batch_without_an_epoch_ends_what_is_known():
    """A leader cannot compare records of the formats 0 and 1."""
    epochs = FetchedEpochs()
    assert epochs.append(5, 0) is None
    assert epochs.append(NO_EPOCH, 6) is None
    assert epochs.last == NO_EPOCH
    assert epochs.is_confirmed(9)


def test_a_leader_is_asked_once():
    epochs = FetchedEpochs()
    assert epochs.is_confirmed(9)
    assert epochs.append(5, 0) is None
    assert epochs.is_confirmed(5)
    assert epochs.is_confirmed(NO_EPOCH)
    assert not epochs.is_confirmed(6)
    assert epochs.confirm(EpochEndOffset(5, 10), 10, 6)
    assert epochs.is_confirmed(6)
    assert epochs.truncate(EpochEndOffset(5, 8), 10) == 8
    assert not epochs.is_confirmed(6)
