"""The logs of a continuous query, through crashes, rivals and hand-overs."""

import time
from unittest.mock import Mock

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.application.checkpoints.logs import ConcurrentUpdateError
from pyspark_kafka.application.continuous import epochs
from pyspark_kafka.application.continuous.epochs import EPOCHS_TO_RETAIN, EpochCommitter, EpochLog
from pyspark_kafka.domain.checkpoints.checkpoint_log import COMMITTED, read_batch, write_batch_end
from pyspark_kafka.domain.continuous.epochs import Epoch, EpochCoordinator
from pyspark_kafka.domain.continuous.messages import TaskId
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.clock import epoch_ms

from ..passing import failing_log


def offsets(value: int) -> PartitionOffsets:
    return PartitionOffsets({TopicPartition("t", 0): value})


class Checkpoint:
    def __init__(self) -> None:
        self.offsets, self.commits = failing_log(), failing_log()

    def run(self, run_id: str) -> EpochLog:
        return EpochLog(self.offsets, self.commits, run_id)

    def plan_batch(self, number: int, end: int) -> None:
        self.offsets.add(number, write_batch_end(offsets(end), 5))


@pytest.fixture
def checkpoint():
    return Checkpoint()


def test_a_new_checkpoint_has_no_epoch(checkpoint):
    recovered = checkpoint.run("a").recover()
    assert (recovered.last, recovered.planned) == (None, None)


def test_a_run_goes_on_after_the_last_epoch(checkpoint):
    first = checkpoint.run("a")
    first.add(Epoch(0, offsets(3)))
    first.add(Epoch(1, offsets(5)))
    assert checkpoint.run("b").recover().last == Epoch(1, offsets(5))


def test_an_epoch_that_was_logged_and_not_committed_is_complete(checkpoint):
    checkpoint.run("a").add(Epoch(0, offsets(3)))
    checkpoint.commits.purge(1)
    recovered = checkpoint.run("b").recover()
    assert (recovered.last, recovered.planned) == (Epoch(0, offsets(3)), None)
    assert checkpoint.commits.get(0) == COMMITTED


def test_a_batch_that_a_micro_batch_query_planned_is_to_be_processed(checkpoint):
    checkpoint.run("a").add(Epoch(0, offsets(3)))
    checkpoint.plan_batch(1, 9)
    run = checkpoint.run("b")
    recovered = run.recover()
    assert (recovered.last, recovered.planned) == (Epoch(0, offsets(3)), Epoch(1, offsets(9)))
    run.commit_planned(Epoch(1, offsets(9)))
    assert checkpoint.run("c").recover().last == Epoch(1, offsets(9))


def test_a_planned_batch_that_somebody_else_commits_reveals_a_rival(checkpoint):
    checkpoint.plan_batch(0, 9)
    run = checkpoint.run("a")
    run.recover()
    checkpoint.commits.add(0, COMMITTED)
    with pytest.raises(ConcurrentUpdateError, match="Multiple streaming jobs detected for 0"):
        run.commit_planned(Epoch(0, offsets(9)))


def test_a_rival_is_found_after_an_earlier_batch_was_committed(checkpoint):
    """Only a commit that has failed may have reached the storage."""
    run = checkpoint.run("a")
    checkpoint.plan_batch(0, 9)
    run.commit_planned(Epoch(0, offsets(9)))
    checkpoint.plan_batch(1, 9)
    checkpoint.commits.add(1, COMMITTED)
    with pytest.raises(ConcurrentUpdateError, match=r"detected for 1.*the log"):
        run.commit_planned(Epoch(1, offsets(9)))


@pytest.mark.parametrize("method", [EpochLog.add, EpochLog.commit_planned])
def test_a_run_that_was_suspended_until_its_number_was_purged_finds_its_rival(
    checkpoint, monkeypatch, method
):
    late = checkpoint.run("a")
    late.recover()
    for number in range(3):
        checkpoint.plan_batch(number, number)
        checkpoint.commits.add(number, COMMITTED)
    for log in (checkpoint.offsets, checkpoint.commits):
        log.purge(1)
    monkeypatch.setattr(epochs, "epoch_ms", lambda: epoch_ms() + 60_000)
    with pytest.raises(ConcurrentUpdateError, match="detected for 2"):
        method(late, Epoch(0, offsets(3)))


def test_a_run_that_was_suspended_before_it_committed_an_epoch_finds_its_rival(
    checkpoint, monkeypatch
):
    """A micro-batch query takes the epoch for a batch that is not finished, and plans the next."""
    late = checkpoint.run("a")
    late.recover()
    commit = checkpoint.commits.add

    def commit_late(number: int, content: bytes) -> bool:
        commit(number, content)
        checkpoint.plan_batch(number + 1, 5)
        monkeypatch.setattr(epochs, "epoch_ms", lambda: epoch_ms() + 60_000)
        return commit(number, content)

    monkeypatch.setattr(checkpoint.commits, "add", commit_late)
    with pytest.raises(ConcurrentUpdateError, match="detected for 1"):
        late.add(Epoch(0, offsets(3)))


def test_a_planned_batch_is_committed_again_after_a_failed_write(checkpoint):
    checkpoint.plan_batch(0, 9)
    run = checkpoint.run("a")
    run.recover()
    checkpoint.commits.fails = 1
    with pytest.raises(MetadataLogError):
        run.commit_planned(Epoch(0, offsets(9)))
    run.commit_planned(Epoch(0, offsets(9)))
    assert checkpoint.commits.get(0) == COMMITTED


def test_of_two_runs_the_later_one_ends(checkpoint):
    one, two = checkpoint.run("a"), checkpoint.run("b")
    one.add(Epoch(0, offsets(3)))
    problem = (
        "Multiple streaming jobs detected for 0. Please make sure only one streaming job runs on "
        r"a specific checkpoint location at a time \(the log\)"
    )
    with pytest.raises(ConcurrentUpdateError, match=problem):
        two.add(Epoch(0, offsets(3)))


def test_a_micro_batch_query_is_a_rival(checkpoint):
    checkpoint.plan_batch(0, 3)
    with pytest.raises(ConcurrentUpdateError):
        checkpoint.run("a").add(Epoch(0, offsets(3)))


def test_a_write_that_seemed_to_fail_counts(checkpoint):
    run = checkpoint.run("a")
    checkpoint.offsets.fails = 1
    with pytest.raises(MetadataLogError):
        run.add(Epoch(0, offsets(3)))
    assert run.add(Epoch(0, offsets(8))) == Epoch(0, offsets(3))
    assert checkpoint.commits.get(0) == COMMITTED


def test_a_commit_that_seemed_to_fail_is_repeated(checkpoint):
    run = checkpoint.run("a")
    checkpoint.commits.fails = 1
    with pytest.raises(MetadataLogError):
        run.add(Epoch(0, offsets(3)))
    assert run.add(Epoch(0, offsets(3))) == Epoch(0, offsets(3))


def test_old_epochs_are_purged_every_twenty_epochs(checkpoint):
    """A hundred are kept then, the newest one included."""
    run = checkpoint.run("a")
    oldest = {}
    for number in range(EPOCHS_TO_RETAIN + 22):
        run.add(Epoch(number, offsets(number)))
        oldest[number] = {log.batch_ids()[0] for log in (checkpoint.offsets, checkpoint.commits)}
    assert [oldest[number] for number in (99, 100, 119, 120, 121)] == [{0}, {1}, {1}, {21}, {21}]


def test_old_epochs_that_cannot_be_deleted_fail_no_epoch(checkpoint, caplog):
    vars(checkpoint.offsets)["purge"] = Mock(side_effect=MetadataLogError("log", "no connection"))
    run = checkpoint.run("a")
    run.recover()
    for number in range(EPOCHS_TO_RETAIN + 1):
        run.add(Epoch(number, offsets(number)))
    assert caplog.text.count("no connection") == 1
    assert checkpoint.commits.batch_ids()[0] == 0


def test_an_epoch_has_the_time_at_which_it_was_logged(checkpoint):
    before = time.time_ns() // 1_000_000
    checkpoint.run("a").add(Epoch(0, offsets(3)))
    logged = read_batch(0, checkpoint.offsets.get(0) or b"")
    assert logged.timestamp_ms is not None
    assert before <= logged.timestamp_ms <= time.time_ns() // 1_000_000


def test_logs_of_different_queries_are_refused(checkpoint):
    checkpoint.run("a").add(Epoch(5, offsets(3)))
    checkpoint.commits.purge(6)
    problem = (
        "Batch 5 was planned last, but batch -1 was committed last: the logs belong to different "
        r"queries. Use both logs of one query \(the log\)"
    )
    with pytest.raises(MetadataLogError, match=problem):
        checkpoint.run("b").recover()


def test_a_malformed_epoch_is_refused(checkpoint):
    checkpoint.offsets.add(0, b"nonsense")
    with pytest.raises(MetadataLogError, match=r"malformed.*the log"):
        checkpoint.run("a").recover()


def test_a_committed_epoch_that_is_missing_or_malformed_is_refused(checkpoint):
    checkpoint.commits.add(0, COMMITTED)
    checkpoint.plan_batch(1, 9)
    problem = r"Batch 0 is missing. Restore its file, or start with new logs \(the log\)"
    with pytest.raises(MetadataLogError, match=problem):
        checkpoint.run("a").recover()
    checkpoint.offsets.add(0, b"nonsense")
    with pytest.raises(MetadataLogError, match=r"malformed.*\(the log\)"):
        checkpoint.run("a").recover()


T0 = TopicPartition("t", 0)
TASK = TaskId(1, 0, "a")


@pytest.fixture
def coordinator():
    coordinator = EpochCoordinator(Epoch(4, offsets(3)))
    coordinator.assign(TASK, [T0])
    coordinator.report(TASK, offsets(5))
    return coordinator


def test_an_epoch_is_tried_again_after_an_outage_with_one_warning(coordinator, caplog):
    log = failing_log(is_stored=False)
    committer = EpochCommitter(EpochLog(log, MemoryMetadataLog(), "run"), 60)
    log.fails = 2
    committer.commit_next(coordinator, is_final=False)
    committer.commit_next(coordinator, is_final=False)
    assert coordinator.last == Epoch(4, offsets(3))
    [warning] = caplog.messages
    assert warning.endswith("the connection broke (the log)")
    committer.commit_next(coordinator, is_final=False)
    assert coordinator.last == Epoch(5, offsets(5))


@pytest.mark.parametrize(("max_outage_s", "is_final"), [(-1, False), (60, True)])
def test_a_long_outage_and_one_at_the_end_fail_the_query(coordinator, max_outage_s, is_final):
    log = failing_log(is_stored=False)
    log.fails = 1
    committer = EpochCommitter(EpochLog(log, MemoryMetadataLog(), "run"), max_outage_s)
    with pytest.raises(MetadataLogError, match="the connection broke"):
        committer.commit_next(coordinator, is_final=is_final)


def test_a_rival_fails_the_query_at_once(coordinator):
    log = MemoryMetadataLog()
    log.add(5, write_batch_end(offsets(9), 1))
    committer = EpochCommitter(EpochLog(log, MemoryMetadataLog(), "run"), 60)
    with pytest.raises(ConcurrentUpdateError):
        committer.commit_next(coordinator, is_final=False)


def test_without_progress_nothing_is_written():
    log = MemoryMetadataLog()
    committer = EpochCommitter(EpochLog(log, MemoryMetadataLog(), "run"), 60)
    committer.commit_next(EpochCoordinator(Epoch(4, offsets(3))), is_final=True)
    assert log.batch_ids() == []


def test_an_epoch_of_this_run_that_is_not_committed_yet_reveals_no_rival(checkpoint):
    run = checkpoint.run("a")
    run.add(Epoch(0, offsets(3)))
    checkpoint.commits.fails = 1
    with pytest.raises(MetadataLogError):
        run.add(Epoch(1, offsets(5)))
    run.require_newest(0)
    with pytest.raises(ConcurrentUpdateError, match="detected for 1"):
        checkpoint.run("b").require_newest(0)


@pytest.mark.parametrize("content", [write_batch_end(offsets(9), 1), b"v9\nof a later version"])
def test_a_later_batch_of_another_program_reveals_a_rival(checkpoint, content):
    run = checkpoint.run("a")
    run.add(Epoch(0, offsets(3)))
    checkpoint.offsets.add(1, content)
    with pytest.raises(ConcurrentUpdateError, match="detected for 1"):
        run.require_newest(0)


def test_the_end_is_logged_behind_an_epoch_whose_first_write_seemed_to_fail(
    checkpoint, coordinator
):
    log = checkpoint.run("run")
    committer = EpochCommitter(log, 60)
    checkpoint.commits.fails = 1
    committer.commit_next(coordinator, is_final=False)
    coordinator.report(TASK, offsets(8))
    committer.commit_next(coordinator, is_final=True)
    assert coordinator.last == log.recover().last == Epoch(6, offsets(8))


def test_the_end_is_logged_behind_a_planned_batch(checkpoint):
    checkpoint.plan_batch(0, 5)
    coordinator = EpochCoordinator(Epoch(-1, offsets(0)), Epoch(0, offsets(5)))
    coordinator.assign(TASK, [T0])
    coordinator.report(TASK, offsets(8))
    log = checkpoint.run("run")
    EpochCommitter(log, 60).commit_next(coordinator, is_final=True)
    assert log.recover().last == Epoch(1, offsets(8))
