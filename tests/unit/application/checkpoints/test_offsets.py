import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.application.checkpoints.offsets import (
    MAX_BACKUPS,
    OffsetCheckpoint,
    OffsetTargets,
    QueryIsRunningError,
    UnusableOffsetsError,
)
from pyspark_kafka.domain.checkpoints.offset_rewrite import Backup, ResumePoint
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.errors import NoCommittedOffsetError
from pyspark_kafka.domain.reading.offset_limits import (
    CommittedOffsets,
    Earliest,
    GlobalTimestamp,
    Latest,
    OnNoMatch,
    Specific,
)

from ..conftest import Kit, tp
from ..passing import passing

NOW_MS = 1_795_251_150_969
OLD, NEW = 7, 3


class Killed(Exception):  # noqa: N818 - is no error: the process ends
    """The process is killed before a write."""


@dataclass
class Writes:
    """The number of writes until the process is killed, and what happens before a write."""

    left: int = 1_000
    before: dict[str, Callable[[], object]] = field(default_factory=dict)

    def count(self, what: str) -> None:
        if not self.left:
            raise Killed
        self.left -= 1
        self.before.pop(what, lambda: None)()


def counted_log(name: str, writes: Writes) -> Any:
    """Return a log in memory whose writes are counted."""
    log = MemoryMetadataLog()

    def counted(method: str) -> Callable[..., object]:
        def call(*given: object) -> object:
            writes.count(f"{name} {method}")
            return getattr(log, method)(*given)

        return call

    made = passing(log, **{each: counted(each) for each in ("add", "purge", "replace", "remove")})
    made.name = name
    return made


class Kept:
    """A checkpoint in memory, of a query with one source of one partition."""

    def __init__(self) -> None:
        self.writes = Writes()
        self.offsets = counted_log("offsets", self.writes)
        self.commits = MemoryMetadataLog()
        self.backups = counted_log("backups", self.writes)
        self.checkpoint = OffsetCheckpoint(self.offsets, self.commits, self.backups, lambda: NOW_MS)

    def plan(self, batch_id: int, end: int) -> None:
        text = f'v1\n{{"batchTimestampMs":{NOW_MS - 60_000}}}\n{{"t": {{"0": {end}}}}}'
        assert self.offsets.add(batch_id, text.encode())

    def commit(self, batch_id: int) -> None:
        assert self.commits.add(batch_id, b"v1\n{}")

    def files(self) -> Mapping[int, bytes | None]:
        return {batch_id: self.offsets.get(batch_id) for batch_id in self.offsets.batch_ids()}

    def rewrite(self, offset: int = NEW) -> None:
        before = self.checkpoint.read()
        self.checkpoint.change(before, before.moved_to({"0": at(offset)}))

    def undo(self) -> None:
        found = self.checkpoint.backup()
        assert found is not None
        self.checkpoint.undo(self.checkpoint.read(), *found)

    @property
    def resumes_at(self) -> int:
        [offset] = self.checkpoint.read().offsets["0"].values()
        return offset


def at(offset: int) -> PartitionOffsets:
    return PartitionOffsets({tp(0): offset})


def kept(*, planned: int | None = None, first: int = 3) -> Kept:
    """Return a checkpoint whose batch 4 is committed, and batch 5 may be planned."""
    made = Kept()
    for batch_id in range(first, 5):
        made.plan(batch_id, OLD - 4 + batch_id)
        made.commit(batch_id)
    if planned is not None:
        made.plan(5, planned)
    return made


SHAPES: Sequence[tuple[int | None, int]] = ((None, 3), (9, 3), (OLD, 3), (9, 4))
"""The end of batch 5, and the first batch that is not purged."""


@pytest.mark.parametrize(("planned", "first"), SHAPES)
def test_a_query_resumes_at_the_new_offset_and_after_undoing_as_before(planned, first):
    made = kept(planned=planned, first=first)
    before = made.checkpoint.read()
    made.rewrite()
    after = made.checkpoint.read()
    assert made.resumes_at == NEW
    assert after.planned is not None
    assert not after.has_unread_batch
    assert before.batch_id == after.batch_id == 4
    made.undo()
    assert made.checkpoint.read() == before
    assert made.checkpoint.backup() is None


@pytest.mark.parametrize("is_undo", [False, True])
@pytest.mark.parametrize(("planned", "first"), SHAPES)
def test_killed_at_any_write(planned, first, *, is_undo):
    """The query resumes at the old or the new offset, and no batch reads a mixture.

    The command that was killed can be repeated, and the rewrite undone.
    """
    writes, ends = 0, []
    while True:
        made = kept(planned=planned, first=first)
        before = made.checkpoint.read()
        if is_undo:
            made.rewrite()
        act = made.undo if is_undo else made.rewrite
        made.writes.left = writes
        try:
            act()
        except Killed:
            writes += 1
        else:
            break
        made.writes.left = 1_000
        found = made.checkpoint.read()
        ends.append(made.resumes_at)
        assert not found.has_unread_batch or found == before
        # Spark reads the last two files.
        last = max(made.offsets.batch_ids())
        assert made.offsets.get(last - 1) is not None or last == first
        if not is_undo or made.checkpoint.backup() is not None:
            act()
        assert made.resumes_at == (OLD if is_undo else NEW)
        while made.checkpoint.backup() is not None:
            made.undo()
        assert made.checkpoint.read() == before
    assert writes >= 4
    old, new = (NEW, OLD) if is_undo else (OLD, NEW)
    assert ends == sorted(ends, key=lambda end: end == new)
    assert {old, new} >= set(ends)


def fail_at_replace(made: Kept, number: int, error: Exception) -> None:
    """Let the ``number``-th replacement of a file of the offset log fail."""

    def fail_later() -> None:
        if number == 1:
            raise error
        fail_at_replace(made, number - 1, error)

    made.writes.before["offsets replace"] = fail_later


@pytest.mark.parametrize("number", [1, 2])
def test_a_storage_that_cannot_replace(number):
    """HttpFS never can, others not at times: the planned batch stays."""
    made = kept(planned=9)
    files = made.files()
    fail_at_replace(made, number, MetadataLogError("offsets/4", "disk full"))
    with pytest.raises(MetadataLogError, match="disk full"):
        made.rewrite()
    assert made.files() == files


def test_a_planned_batch_is_restored_without_a_replacement():
    """Nothing else was changed: a storage that cannot replace files gets it back."""
    made = kept(planned=9)
    before = made.checkpoint.read()
    fail_at_replace(made, 2, Killed())
    with pytest.raises(Killed):
        made.rewrite()
    assert made.checkpoint.read().planned is None
    fail_at_replace(made, 1, MetadataLogError("offsets/4", "disk full"))
    made.undo()
    assert made.checkpoint.read() == before


def test_a_query_that_ran_since_resumes_at_the_offsets_of_the_backup():
    made = kept()
    made.rewrite()
    made.commit(5)
    made.plan(6, 20)
    made.commit(6)
    made.undo()
    assert made.checkpoint.read().batch_id == 6
    assert made.resumes_at == OLD
    made.undo()
    assert made.resumes_at == 20


def test_only_the_last_backups_are_kept():
    made = kept()
    for offset in range(MAX_BACKUPS + 3):
        made.rewrite(offset)
    assert len(made.backups.batch_ids()) == MAX_BACKUPS


@pytest.mark.parametrize(
    ("committed", "planned", "problem"),
    [
        ((), (), "There is no checkpoint of a query"),
        ((), (0,), "No batch is committed"),
        ((0, 1), (2, 3), "Batch 3 was planned last, but batch 1 was committed last"),
    ],
)
def test_there_has_to_be_a_committed_batch_and_at_most_one_after_it(committed, planned, problem):
    made = Kept()
    for batch_id in (*committed, *planned):
        made.plan(batch_id, 1)
    for batch_id in committed:
        made.commit(batch_id)
    with pytest.raises(MetadataLogError, match=problem):
        made.checkpoint.read()


def test_a_file_that_is_purged_before_it_is_read_is_looked_for_again():
    made = kept()
    made.commits.replace(4, b"")
    made.offsets.batch_ids = lambda: [4]
    made.offsets.remove(4)
    with pytest.raises(MetadataLogError, match="file of the last committed batch is missing"):
        made.checkpoint.read()


def test_an_error_names_a_malformed_file():
    made = kept()
    made.offsets.replace(4, b"v9\n{}\n-")
    with pytest.raises(MetadataLogError, match=r"encountered v9.*offsets"):
        made.checkpoint.read()
    made.backups.add(0, b"{}")
    with pytest.raises(MetadataLogError, match=r"no backup of offsets.*backups/0"):
        made.checkpoint.backup()


def require_stopped(made: Kept) -> ResumePoint:
    point = made.checkpoint.read()
    made.checkpoint.require_stopped(point)
    return point


def test_a_query_that_may_be_running():
    require_stopped(kept())
    with pytest.raises(QueryIsRunningError, match="batch 5 is planned"):
        require_stopped(kept(planned=9))
    made = kept(planned=9)
    made.rewrite()
    require_stopped(made)


def test_nothing_is_changed_if_a_batch_was_planned_meanwhile():
    made = kept()
    before = made.checkpoint.read()
    made.plan(5, 9)
    files = made.files()
    after = before.moved_to({"0": at(NEW)})
    with pytest.raises(QueryIsRunningError, match="planned or committed a batch"):
        made.checkpoint.change(before, after)
    with pytest.raises(QueryIsRunningError, match="planned or committed a batch"):
        made.checkpoint.undo(before, 0, Backup(NOW_MS, before, after))
    assert made.files() == files


def test_a_batch_that_is_planned_at_the_same_time_keeps_the_old_offsets():
    made = kept()
    made.writes.before["offsets replace"] = lambda: made.plan(5, 9)
    with pytest.raises(QueryIsRunningError, match="it has planned batch 5"):
        made.rewrite()
    assert made.resumes_at == OLD
    assert made.checkpoint.read().has_unread_batch


def test_a_batch_that_is_committed_at_the_same_time():
    """The planned batch of a query that lives may end: the command says so."""
    made = kept(planned=9)
    made.writes.before["offsets replace"] = lambda: made.commit(5)
    with pytest.raises(QueryIsRunningError, match="it has committed batch 5"):
        made.rewrite()


def test_of_two_commands_one_writes_and_the_other_changes_nothing():
    made = kept()
    files = made.files()
    made.writes.before["backups add"] = lambda: made.backups.add(0, b"of the other")
    with pytest.raises(MetadataLogError, match="Another command changes the same offsets"):
        made.rewrite()
    assert made.files() == files


def targets(kit: Kit) -> OffsetTargets:
    """Return targets for a checkpoint that has a partition that no longer exists in Kafka."""
    kit.produce(5)
    kit.produce(3, partition=1)
    return OffsetTargets(kit.container({"assign": '{"t":[0,1],"gone":[0]}'}).offset_reader())


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (Earliest(), {tp(0): 0, tp(1): 0}),
        (Latest(), {tp(0): 5, tp(1): 3}),
        (GlobalTimestamp(2**60, OnNoMatch.LATEST), {tp(0): 5, tp(1): 3}),
        (Specific(PartitionOffsets({tp(0): 2})), {tp(0): 2}),
        (Specific(PartitionOffsets({tp(0): -1, tp(1): -2})), {tp(0): 5, tp(1): 0}),
        (Specific(PartitionOffsets(), (("t", -1),)), {tp(0): 5, tp(1): 3}),
    ],
)
def test_all_existing_partitions_get_an_offset(kit, limit, expected):
    assert targets(kit).resolve(limit) == expected


def test_a_groups_committed_offsets_can_be_targets(kit):
    fetcher = kit.container().offset_fetcher()
    fetcher.commit("g", PartitionOffsets({tp(0): 4, tp(1): 1}))
    made = targets(kit)
    assert made.resolve(CommittedOffsets("g")) == {tp(0): 4, tp(1): 1}
    with pytest.raises(NoCommittedOffsetError, match="'other' has committed no offset"):
        made.resolve(CommittedOffsets("other"))


@pytest.mark.parametrize(
    ("offsets", "topics", "problem"),
    [
        ({tp(0): 6}, (), "offset 6 of t-0 is not in Kafka, which has offsets 0 to 5"),
        ({tp(7): 0}, (), "does not have Set(t-7)"),
        ({}, (("u", -1), ("t", -1)), "does not have u."),
    ],
)
def test_offsets_that_the_log_does_not_hold_are_refused(kit, offsets, topics, problem):
    limit = Specific(PartitionOffsets(offsets), topics)
    with pytest.raises(UnusableOffsetsError, match=re.escape(problem)):
        targets(kit).resolve(limit)
