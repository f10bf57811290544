from contextlib import nullcontext
from unittest.mock import Mock

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.application.checkpoints.logs import CheckpointLogs, CheckpointState
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets

from ..conftest import tp
from ..passing import passing


def begin(log: MemoryMetadataLog, batch_id: int, *ends: str) -> None:
    log.add(batch_id, "\n".join(["v1", '{"batchTimestampMs":7}', *ends]).encode())


def checkpoint(*, begun: int, committed: int) -> CheckpointLogs:
    """Return a checkpoint in which batch N ends at offset N + 1 of one partition."""
    offsets, commits = MemoryMetadataLog(), MemoryMetadataLog()
    for batch_id in range(begun):
        begin(offsets, batch_id, f'{{"t":{{"0":{batch_id + 1}}}}}')
    for batch_id in range(committed):
        commits.add(batch_id, b"v1\n{}")
    return CheckpointLogs(offsets, commits)


def ids(state: CheckpointState) -> tuple[int | None, int | None]:
    return (
        state.committed and state.committed.batch_id,
        state.in_flight and state.in_flight.batch_id,
    )


@pytest.mark.parametrize(
    ("begun", "committed", "expected"),
    [(0, 0, (None, None)), (1, 0, (None, 0)), (1, 1, (0, None)), (12, 11, (10, 11))],
)
def test_the_newest_committed_batch_and_the_one_in_flight_are_found(begun, committed, expected):
    state = checkpoint(begun=begun, committed=committed).state()
    assert ids(state) == expected
    with pytest.raises(MetadataLogError, match="no checkpoint") if begun == 0 else nullcontext():
        state.require_batch("memory")


def test_what_is_in_flight_is_counted_in_offsets():
    """Partitions and sources that were not known before do not count."""
    assert checkpoint(begun=1, committed=0).state().offsets_in_flight == 0
    offsets, commits = MemoryMetadataLog(), MemoryMetadataLog()
    begin(offsets, 0, '{"t":{"0":5}}', "-")
    begin(offsets, 1, '{"t":{"0":9,"1":100}}', '{"u":{"0":100}}')
    commits.add(0, b"")
    state = CheckpointLogs(offsets, commits).state()
    assert state.offsets_in_flight == 4


def test_a_commit_without_its_offsets_is_ignored():
    offsets, commits = MemoryMetadataLog(), MemoryMetadataLog()
    for batch_id in (3, 5):
        begin(offsets, batch_id, '{"t":{"0":9}}')
    for batch_id in (3, 4, 5, 6):
        commits.add(batch_id, b"")
    assert ids(CheckpointLogs(offsets, commits).state()) == (5, None)


def test_an_older_batch_without_a_commit_is_not_in_flight():
    offsets, commits = MemoryMetadataLog(), MemoryMetadataLog()
    for batch_id in (3, 4):
        begin(offsets, batch_id, '{"t":{"0":9}}')
    commits.add(4, b"")
    assert ids(CheckpointLogs(offsets, commits).state()) == (4, None)


def test_a_file_that_is_purged_meanwhile():
    offsets, commits = MemoryMetadataLog(), MemoryMetadataLog()
    begin(offsets, 0, '{"t":{"0":9}}')
    commits.add(0, b"")
    read = Mock(side_effect=[None, offsets.get(0)])
    state = CheckpointLogs(passing(offsets, get=read), commits).state()
    assert state.committed is not None
    assert state.committed.offsets == {"0": PartitionOffsets({tp(0): 9})}


def test_an_error_names_a_file_that_is_none_of_sparks():
    offsets = MemoryMetadataLog()
    offsets.add(0, b"hello")
    with pytest.raises(MetadataLogError, match=r"Log file was malformed.*memory/0"):
        CheckpointLogs(offsets, MemoryMetadataLog()).state()
