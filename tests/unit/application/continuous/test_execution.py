"""The driver of a continuous query, with tasks that follow a script, in virtual time."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from unittest.mock import Mock

import pytest

from pyspark_kafka.application.checkpoints.logs import ConcurrentUpdateError
from pyspark_kafka.application.continuous.errors import (
    NotEnoughSlotsError,
    RestartsExhaustedError,
    TaskFailedError,
)
from pyspark_kafka.domain.checkpoints.checkpoint_log import COMMITTED, write_batch_end
from pyspark_kafka.domain.continuous.messages import (
    AssignPartitions,
    RevokePartitions,
    StopTask,
    TaskDrained,
    TaskLostData,
)
from pyspark_kafka.domain.continuous.settings import ExecutionLimits, RestartLimits
from pyspark_kafka.domain.errors import BrokerUnreachableError, KafkaRequestError, MetadataLogError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading import data_loss
from pyspark_kafka.domain.reading.errors import DataLossError

from ..conftest import offsets, tp
from ..scripted_query import Script, ScriptedQuery, at, task, virtual_time

LIMITS = ExecutionLimits(restarts=RestartLimits(3, first_delay_s=4.0))
GROUP = {"commitOffsetsToGroup": "g"}
SILENT_S = 3_000.0
MAX_WAIT_S = 8.5
UNREACHABLE = BrokerUnreachableError("memory", 1)
LENIENT = {"failOnDataLoss": "false"}
UNKNOWN = PartitionOffsets({tp(0): 5, tp(1): 3, tp(2): 1})


@pytest.fixture
def time(monkeypatch):
    return virtual_time(monkeypatch)


@pytest.fixture
def make(kit, time):
    """Return a function that makes a query of the topic ``t`` with these limits."""

    def make_query(options: Mapping[str, str] | None = None, **limits: object) -> ScriptedQuery:
        return ScriptedQuery(kit, time, replace(LIMITS, **limits), options or {})  # type: ignore[arg-type]

    return make_query


@pytest.fixture
def query(make):
    """Return a query with a task for each of the two partitions of its topic."""
    return make()


def test_the_first_offsets_are_logged_before_a_record_is_read(kit, query):
    kit.produce(3)
    kit.cluster.delete_records({tp(0): 2})

    def script() -> Script:
        assert query.epochs == {0: offsets(2, 0)}
        yield None

    query.run(script())
    assert query.commands(task(0)) == [AssignPartitions(at(0, 2)), StopTask()]
    assert query.commands(task(1)) == [AssignPartitions(at(1, 0)), StopTask()]


def test_a_query_goes_on_after_the_last_epoch_and_logs_that_it_runs(query):
    query.offset_log.add(4, write_batch_end(offsets(7, 9), 1))
    query.commit_log.add(4, COMMITTED)

    def script() -> Script:
        assert query.epochs == {4: offsets(7, 9), 5: offsets(7, 9)}
        yield None

    query.run(script())
    assert query.commands(task(1))[0] == AssignPartitions(at(1, 9))


def test_a_batch_that_was_planned_is_the_first_epoch_once_it_is_acknowledged(query):
    query.offset_log.add(0, write_batch_end(offsets(5, 3), 1))

    def script() -> Script:
        assert query.epochs == {}
        query.report(task(0), at(0, 6))
        yield 3
        assert query.epochs == {}
        query.report(task(1), at(1, 3))
        yield 3

    query.run(script())
    assert query.epochs == {0: offsets(5, 3), 1: offsets(6, 3)}


@pytest.fixture
def takes_over(make):
    """Return a function that makes a query whose checkpoint has a batch of three partitions."""

    def make_query(options: Mapping[str, str] | None = None) -> ScriptedQuery:
        query = make(options, task_timeout_s=300)
        query.offset_log.add(0, write_batch_end(UNKNOWN, 1))
        return query

    return make_query


def report_known(query: ScriptedQuery) -> None:
    """Finish the partitions of a planned batch that brokers return."""
    query.report(task(0), at(0, 5))
    query.report(task(1), at(1, 3))


def test_a_planned_batch_waits_for_a_partition_that_no_broker_returns_yet(kit, takes_over):
    query = takes_over()

    def script() -> Script:
        report_known(query)
        yield 9
        assert query.epochs == {}
        kit.cluster.add_partitions("t", 3)
        yield 2
        assert AssignPartitions(at(2, 0)) in query.commands(task(0))
        query.report(task(0), at(2, 1))
        yield 2

    query.run(script())
    assert query.epochs[0] == UNKNOWN
    assert not kit.events.named("data_lost")


def test_a_partition_of_a_planned_batch_that_no_broker_returns_in_time_is_lost_data(
    takes_over, time
):
    """Its records were not read: the batch must not be taken for finished."""
    query = takes_over()

    def script() -> Script:
        report_known(query)
        yield 90

    with pytest.raises(DataLossError, match="t-2"):
        query.run(script())
    assert 30 <= time.seconds < 34
    assert query.epochs == {}


def test_a_batch_without_a_partition_that_no_broker_returns_is_finished_with_a_report(
    kit, takes_over
):
    query = takes_over(LENIENT)

    def script() -> Script:
        report_known(query)
        yield 28
        assert query.epochs == {}
        yield 5

    query.run(script())
    assert query.epochs[0] == UNKNOWN
    assert kit.events.named("data_lost") == ((data_loss.partitions_deleted([tp(2)]),),)


def test_a_query_that_stops_leaves_a_batch_whose_partitions_no_broker_returns_yet(kit, takes_over):
    query = takes_over()

    def script() -> Script:
        report_known(query)
        yield 9

    query.run(script())
    assert query.epochs == {}
    assert not kit.events.named("data_lost")


def test_an_epoch_is_logged_once_an_interval(make):
    query = make(epoch_s=10)

    def script() -> Script:
        yield None
        for offset in range(1, 10):
            query.report(task(0), at(0, offset))
            yield 1
        assert query.epochs == {0: offsets(0, 0)}
        yield 2
        assert query.epochs == {0: offsets(0, 0), 1: offsets(9, 0)}
        query.report(task(0), at(0, 10))
        yield 8
        assert len(query.epochs) == 2
        yield 2
        assert query.epochs[2] == offsets(10, 0)

    query.run(script())


def test_an_outage_of_the_log_is_survived_while_it_is_short(make, time):
    query = make(log_outage_s=9)

    def script() -> Script:
        query.offset_log.fails = 8
        query.report(task(0), at(0, 5))
        yield 15
        assert query.epochs[1] == offsets(5, 0)
        query.offset_log.fails = 100
        query.report(task(0), at(0, 6))
        yield 8
        query.report(task(0), at(0, 7))
        yield 7
        pytest.fail("the query did not end")

    with pytest.raises(MetadataLogError, match="the connection broke"):
        query.run(script())
    assert query.epochs == {0: offsets(0, 0), 1: offsets(5, 0)}
    assert time.seconds == pytest.approx(25.5, abs=1)


def test_threads_that_wait_for_records_go_on_once_they_are_logged(kit, query):
    kit.produce(3)

    def script() -> Script:
        yield 2
        done = query.execution.catch_up()
        query.report(task(0), at(0, 2))
        yield 2
        assert not done.is_set()
        query.report(task(0), at(0, 3))
        yield 2
        assert done.is_set()

    query.run(script())


def test_threads_do_not_wait_for_records_of_deleted_partitions(kit, make):
    kit.cluster.create_topic("t2", 1)
    kit.produce(3, topic="t2")
    query = make({"subscribePattern": "t.*", "startingOffsets": "earliest", **LENIENT})

    def script() -> Script:
        yield 2
        done = query.execution.catch_up()
        yield 2
        assert not done.is_set()
        kit.cluster.delete_topic("t2")
        yield 4
        assert done.is_set()

    query.run(script())


@pytest.mark.parametrize("fails", [0, 1])
def test_tasks_are_disconnected_and_cancelled_at_the_end(query, fails):
    query.commit_log.fails = fails
    with pytest.raises(MetadataLogError) if fails else nullcontext():
        query.run()
    assert query.channel.is_closed
    assert query.runner.cancelled == [30]


def test_what_tasks_report_while_they_stop_is_logged(query):
    def script() -> Script:
        query.drain(drains=False)
        query.execution.stop()
        yield None
        assert query.stopped() == {task(0), task(1)}
        query.report(task(0), at(0, 5))
        query.send(TaskDrained(task(0)))
        yield 3
        query.report(task(1), at(1, 6))
        query.send(TaskDrained(task(1)))
        yield None
        pytest.fail("both tasks had stopped")

    query.run(script())
    assert query.epochs[1] == offsets(5, 6)
    assert query.reports[-1].end == offsets(5, 6)


def test_tasks_that_do_not_stop_are_waited_for_as_long_as_the_limit_says(make, time):
    query = make(stop_timeout_s=7)
    query.drain(drains=False)
    query.run()
    assert time.seconds == pytest.approx(7, abs=0.2)


def test_the_end_of_the_job_ends_the_wait_and_no_report_is_lost(query, time):
    def script() -> Script:
        query.drain(drains=False)
        query.execution.stop()
        yield 3
        time.after(0.01, lambda: query.report(task(0), at(0, 5)))
        time.after(0.01, query.runner.end)
        yield 20

    query.run(script())
    assert time.seconds < 5
    assert query.epochs[1] == offsets(5, 0)


def test_a_task_that_starts_while_the_query_stops_reads_nothing(query):
    query.runner.starts_tasks = False

    def script() -> Script:
        query.start(task(0))
        query.drain(drains=False)
        yield None
        query.execution.stop()
        yield None
        query.start(task(1))
        yield None

    query.run(script())
    assert query.commands(task(1)) == [StopTask()]


def test_an_epoch_that_cannot_be_logged_at_the_end_is_an_error(query):
    def script() -> Script:
        yield None
        query.report(task(0), at(0, 5))
        yield None
        query.offset_log.fails = 1

    with pytest.raises(MetadataLogError):
        query.run(script())


@pytest.mark.parametrize(("max_tasks", "tasks"), [(None, 3), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_a_query_has_a_task_for_each_partition_or_as_many_as_are_set(kit, make, max_tasks, tasks):
    kit.cluster.add_partitions("t", 3)
    query = make(max_tasks=max_tasks)
    query.run()
    assert query.runner.started == [(0, tasks)]
    assigned = [
        partition
        for _, command in query.channel.sent
        if isinstance(command, AssignPartitions)
        for partition in command.offsets
    ]
    assert sorted(assigned) == [tp(0), tp(1), tp(2)]


def test_a_query_of_a_pattern_without_a_topic_has_one_task_which_gets_partitions_later(kit, make):
    query = make({"subscribePattern": "later"})

    def script() -> Script:
        yield 2
        assert query.commands(task(0)) == []
        kit.cluster.create_topic("later", 1)
        yield 2
        assert [type(command) for command in query.commands(task(0))] == [AssignPartitions]

    query.run(script())
    assert query.runner.started == [(0, 1)]


def test_a_query_starts_with_as_many_tasks_as_the_first_executor_can_run(query, time):
    query.runner.slots = 0
    time.after(50, lambda: setattr(query.runner, "slots", 1))
    query.run()
    [(started_at, tasks)] = query.runner.started
    assert tasks == 1
    assert started_at == pytest.approx(50, abs=0.2)


def test_as_many_executors_are_waited_for_as_the_tasks_that_are_set_need(make, time):
    query = make(max_tasks=2)
    query.runner.slots = 0
    time.after(50, lambda: setattr(query.runner, "slots", 1))
    time.after(58, lambda: setattr(query.runner, "slots", 2))
    query.run()
    [(started_at, tasks)] = query.runner.started
    assert tasks == 2
    assert started_at == pytest.approx(58, abs=0.2)


@pytest.mark.parametrize(("slots", "missing", "seconds"), [(0, 2, 8), (1, 1, 10)])
def test_too_few_slots_for_the_tasks_that_are_set_are_an_error(make, time, slots, missing, seconds):
    query = make(max_tasks=2, start_timeout_s=8)
    query.runner.slots = slots
    with pytest.raises(NotEnoughSlotsError, match=f"only {slots} were free: {missing} are missing"):
        query.run()
    assert time.seconds == pytest.approx(seconds, abs=0.2)
    assert query.runner.started == []


def test_a_query_without_any_executor_is_an_error(make):
    query = make(start_timeout_s=8)
    query.runner.slots = 0
    with pytest.raises(NotEnoughSlotsError, match=r"2 tasks.*only 0 were free: 2 are missing"):
        query.run()


def test_executors_that_are_lost_are_waited_for_in_a_restart(make, time, caplog):
    """A restart that finds too few counts as a failure, and is followed by another."""
    query = make(max_tasks=2)
    query.runner.slots = 2

    def script() -> Script:
        yield 1
        query.runner.slots = 1
        time.after(15, lambda: setattr(query.runner, "slots", 2))
        query.runner.end("an executor was lost")
        yield 1

    query.run(script())
    assert "only 1 were free: 1 are missing" in caplog.text
    assert [tasks for _, tasks in query.runner.started] == [2, 2]
    assert query.progress.tasks == 2


def test_a_restart_waits_for_as_many_executors_as_there_were(kit, query, time):
    """After ten seconds fewer tasks run. Executors that were not there are not waited for."""
    kit.cluster.add_partitions("t", 4)
    query.runner.slots = 3

    def script() -> Script:
        yield 1
        assert query.progress.tasks == 3
        query.runner.slots = 1
        time.after(10, lambda: setattr(query.runner, "slots", 3))
        query.runner.end("an executor was lost")
        yield 1
        query.runner.slots = 2
        query.runner.end("an executor was lost")
        yield 1

    query.run(script())
    assert query.runner.started == [
        (0, 3),
        (pytest.approx(11, abs=0.2), 3),
        (pytest.approx(11 + 8 + 10, abs=0.3), 2),
    ]
    assert query.progress.tasks == 2


def test_stopping_ends_the_wait_for_executors(query, time):
    query.runner.slots = 0
    time.after(5, query.execution.stop)
    query.run()
    assert time.seconds < 6


def test_tasks_that_do_not_start_in_time_are_an_error(make, time):
    query = make(start_timeout_s=12, task_timeout_s=100)
    query.runner.starts_tasks = False

    def script() -> Script:
        query.start(task(1))
        yield 11.8
        assert not query.progress.is_processing
        yield 60
        pytest.fail("the query did not end")

    match = r"2 tasks.*only 1 were free within 12 s: 1 are missing"
    with pytest.raises(NotEnoughSlotsError, match=match):
        query.run(script())
    assert time.seconds == pytest.approx(12, abs=0.2)


def test_tasks_that_do_not_start_again_in_time_are_a_failure(make):
    query = make(start_timeout_s=12, restarts=RestartLimits(1, first_delay_s=1))

    def script() -> Script:
        yield 1
        query.runner.starts_tasks = False
        query.runner.end("it broke")
        yield 6
        assert not query.progress.is_processing
        yield 60
        pytest.fail("the query did not end")

    with pytest.raises(RestartsExhaustedError, match="only 0 were free within 12 s"):
        query.run(script())


def test_a_query_processes_records_once_all_tasks_have_started(query):
    query.runner.starts_tasks = False

    def script() -> Script:
        query.start(task(0))
        yield None
        assert not query.progress.is_processing
        query.start(task(1))
        yield None
        assert query.progress.is_processing

    query.run(script())


def test_a_slot_that_the_job_does_not_have_is_ignored(query):
    def script() -> Script:
        query.start(task(2))
        yield 1

    query.run(script())
    assert query.commands(task(2)) == []
    assert query.runner.started == [(0, 2)]


@pytest.mark.parametrize("error", [UNREACHABLE, KafkaRequestError("a request", "it is denied")])
def test_brokers_that_do_not_answer_at_the_first_start_are_an_error(query, error):
    query.offset_log.add(0, write_batch_end(offsets(0, 0), 1))
    query.commit_log.add(0, COMMITTED)
    query.lose_brokers(error)
    with pytest.raises(type(error)):
        query.run()


@pytest.mark.parametrize("error", [UNREACHABLE, KafkaRequestError("a request", "it is denied")])
def test_brokers_that_do_not_answer_at_a_restart_are_waited_for(make, time, error, caplog):
    query = make({"kafka.default.api.timeout.ms": "10000"})

    def script() -> Script:
        yield 1
        query.lose_brokers(error)
        query.runner.end("it broke")
        time.after(18, query.find_brokers)
        yield 1

    query.run(script())
    assert f"start again: {error}" in caplog.text
    # After 4, 8 and 16 seconds, of which one at least failed.
    assert [tasks for _, tasks in query.runner.started] == [2, 2]


def test_tasks_start_again_from_what_is_acknowledged(query):
    def script() -> Script:
        query.report(task(0), at(0, 5))
        yield 1
        query.runner.end("it broke")
        yield None
        query.report(task(1, run=2), at(1, 6))
        yield 1

    query.run(script())
    assert query.commands(task(0, run=2))[0] == AssignPartitions(at(0, 5))
    assert query.commands(task(1, run=2))[0] == AssignPartitions(at(1, 0))
    assert query.epochs == {0: offsets(0, 0), 1: offsets(5, 0), 2: offsets(5, 6)}
    assert query.reports[-1].restarts == 1


def test_the_delay_before_a_restart_doubles_until_the_limit_is_reached(query, caplog):
    def script() -> Script:
        for _ in range(4):
            yield 1
            query.runner.end("a worker crashed")
            yield None
        pytest.fail("the query did not end")

    reason = "failed again after 3 restarts within 600 s: a worker crashed"
    with pytest.raises(RestartsExhaustedError, match=reason):
        query.run(script())
    times = [seconds for seconds, _ in query.runner.started]
    waited = [after - before for before, after in pairwise(times)]
    assert waited == pytest.approx([5, 9, 17], abs=0.3)
    assert query.runner.cancelled == [30] * 5
    assert len([text for text in caplog.messages if "start again: a worker crashed" in text]) == 3


def test_failures_of_long_ago_do_not_count(make):
    query = make(restarts=RestartLimits(1, within_s=100, first_delay_s=1), task_timeout_s=1_000)

    def script() -> Script:
        for _ in range(3):
            yield 110
            query.runner.end("it broke")
            yield None

    query.run(script())
    assert len(query.runner.started) == 4


def test_stopping_ends_the_wait_for_a_restart(query, time):
    def script() -> Script:
        yield 1
        time.after(2, query.execution.stop)
        query.runner.end("it broke")
        yield 1

    query.run(script())
    assert len(query.runner.started) == 1


def test_what_tasks_reported_before_a_stop_in_a_restart_is_logged(query, time):
    def script() -> Script:
        query.drain(drains=False)
        query.fail(task(0))
        yield 0.1
        query.report(task(1), at(1, 7))
        query.send(TaskDrained(task(1)))
        time.after(2, query.execution.stop)
        yield None

    query.run(script())
    assert len(query.runner.started) == 1
    assert list(query.epochs.values())[-1] == offsets(0, 7)


def test_the_other_tasks_of_a_failed_job_report_what_is_acknowledged(query):
    def script() -> Script:
        query.drain(drains=False)
        query.fail(task(0))
        yield 0.1
        assert query.stopped() == {task(0), task(1)}
        query.report(task(1), at(1, 7))
        query.send(TaskDrained(task(1)))
        yield None

    query.run(script())
    assert query.commands(task(1, run=2))[0] == AssignPartitions(at(1, 7))
    # The failed one is not waited for.
    assert query.runner.started[1][0] == pytest.approx(4, abs=0.3)


def test_the_other_tasks_of_a_failed_job_have_two_seconds(query):
    def script() -> Script:
        query.drain(drains=False)
        query.fail(task(0))
        yield 5
        query.drain(drains=True)
        yield None

    query.run(script())
    assert query.runner.started[1][0] == pytest.approx(6, abs=0.3)


def test_what_tasks_of_an_earlier_job_report_is_ignored_and_they_are_stopped(query):
    def script() -> Script:
        yield 1
        query.runner.end("it broke")
        yield 1
        query.channel.sent.clear()
        query.report(task(0), at(0, 99))
        query.start(task(1, "late"))
        query.fail(task(1), is_permanent=True)
        yield 2
        assert query.stopped() == {task(0), task(1), task(1, "late")}

    query.run(script())
    assert query.epochs == {0: offsets(0, 0)}


def test_a_job_that_ends_starts_again_and_the_reason_is_the_best_that_is_known(query, caplog):
    query.runner.runs_again = True

    def script() -> Script:
        query.runner.end()
        yield None
        query.fail(task(0, run=2), "the task's reason")
        query.runner.end()
        yield None
        query.fail(task(0, run=3), "the task's reason")
        query.runner.end("the job's reason")
        yield None

    query.run(script())
    reasons = [text.rpartition("again: ")[2] for text in caplog.messages if "again: " in text]
    assert reasons == ["all tasks have ended", "the task's reason", "the job's reason"]


def test_a_task_that_fails_restarts_all_at_once_if_nothing_runs_it_again(query, caplog):
    def script() -> Script:
        query.fail(task(0), "its disk is full")
        yield 1

    query.run(script())
    assert query.runner.started == [(0, 2), (pytest.approx(4, abs=0.3), 2)]
    assert "start again: its disk is full" in caplog.text


def test_a_failed_task_that_runs_again_takes_over_from_what_is_acknowledged(query):
    query.runner.runs_again = True

    def script() -> Script:
        query.report(task(0), at(0, 5))
        query.fail(task(0))
        yield 9
        query.start(task(0, "b"))
        yield 9
        query.report(task(0), at(0, 99))
        query.report(task(0, "b"), at(0, 8))
        yield 2

    query.run(script())
    assert len(query.runner.started) == 1
    assert query.commands(task(0, "b"))[0] == AssignPartitions(at(0, 5))
    assert query.commands(task(0))[:2] == [AssignPartitions(at(0, 0)), StopTask()]
    assert query.commands(task(1)) == [AssignPartitions(at(1, 0)), StopTask()]
    assert max(query.epochs.items()) == (2, offsets(8, 0))
    assert query.reports[-1].restarts == 1


def test_a_failed_task_that_does_not_run_again_within_ten_seconds_restarts_all(query):
    query.runner.runs_again = True

    def script() -> Script:
        query.fail(task(0))
        yield 9.8
        assert query.stopped() == set()
        yield 0.5
        assert query.stopped() == {task(0), task(1)}

    query.run(script())
    assert query.runner.started[1][0] == pytest.approx(14, abs=0.4)


@pytest.mark.parametrize("has_reason", [True, False])
def test_a_task_that_starts_too_often_ends_the_query(query, *, has_reason):
    query.runner.runs_again = True

    def script() -> Script:
        attempts = "abcde"
        for before, after in pairwise(attempts):
            if has_reason:
                query.fail(task(0, before), "it broke.")
            query.start(task(0, after))
            yield 1
        pytest.fail("the query did not end")

    reason = "it broke" if has_reason else r"task 0 \(run 1, attempt e\) started too often"
    problem = rf"after 3 restarts within 600 s: {reason}\. Remove"
    with pytest.raises(RestartsExhaustedError, match=problem):
        query.run(script())


def test_an_error_that_a_restart_would_meet_again_ends_the_query(query):
    def script() -> Script:
        query.fail(task(1), "[KAFKA_X] no such column", is_permanent=True)
        yield 1
        pytest.fail("the query did not end")

    with pytest.raises(TaskFailedError, match=r"^\[KAFKA_X\] no such column$"):
        query.run(script())
    assert query.stopped() == set()


def test_a_silent_task_restarts_all(make, caplog):
    query = make(task_timeout_s=6)

    def script() -> Script:
        for _ in range(3):
            query.report(task(0), offsets())
            query.report(task(1), offsets())
            yield 5.5
        for _ in range(3):
            query.report(task(0), offsets())
            assert query.stopped() == set()
            yield 0.15
        query.report(task(0), offsets())
        yield 1
        assert query.stopped() == {task(0), task(1)}

    query.run(script())
    assert (
        "task 1 (run 1, attempt a) has sent nothing for 6 s. A function may not take that long for "
        "one batch: if it has to, raise 'task_timeout_s' of ExecutionLimits"
    ) in caplog.text
    assert len(query.runner.started) == 2


def test_a_task_is_not_silent_after_it_has_failed_or_stopped(make):
    query = make(task_timeout_s=6)
    query.runner.runs_again = True

    def script() -> Script:
        query.send(TaskDrained(task(1)))
        query.fail(task(0))
        yield 8
        assert query.stopped() == set()

    query.run(script())


def test_a_job_that_cannot_be_cancelled_delays_a_restart(query, time, caplog):
    query.runner.hangs = True

    def script() -> Script:
        query.fail(task(0), "it broke")
        time.after(6, query.runner.end)
        yield 1

    query.run(script())
    assert "start again: tasks of the last run have not ended" in caplog.text
    assert query.runner.started == [(0, 2), (pytest.approx(12, abs=0.3), 2)]


def test_tasks_start_again_while_the_log_cannot_be_read(query, caplog):
    """Whether another query has taken over is found out with the next epoch."""

    def script() -> Script:
        query.fail(task(0), "it broke")
        latest = query.offset_log.latest
        query.offset_log.latest = Mock(side_effect=MetadataLogError("offsets", "it is down"))
        yield 6
        query.offset_log.latest = latest

    query.run(script())
    assert (
        "not known whether another query uses the checkpoint: [KAFKA_METADATA_LOG]" in caplog.text
    )
    assert len(query.runner.started) == 2


def test_tasks_do_not_start_again_where_another_query_has_taken_over(query):
    def script() -> Script:
        query.offset_log.add(1, write_batch_end(offsets(1, 1), 1))
        query.fail(task(0), "it broke")
        yield 6
        pytest.fail("the query did not end")

    with pytest.raises(ConcurrentUpdateError):
        query.run(script())
    assert len(query.runner.started) == 1


@pytest.mark.parametrize("cause", ["new partitions", "a task that runs again"])
def test_no_task_gets_partitions_where_another_query_has_taken_over(kit, query, cause):
    """It would fence the tasks of the other query; an idle one logs no epoch."""

    def script() -> Script:
        yield None
        query.offset_log.add(1, write_batch_end(offsets(1, 1), 1))
        query.channel.sent.clear()
        if cause == "new partitions":
            kit.cluster.add_partitions("t", 3)
        else:
            query.start(task(0, "b"))
        yield 6
        pytest.fail("the query did not end")

    with pytest.raises(ConcurrentUpdateError):
        query.run(script())
    assert not query.channel.sent


def test_records_that_tasks_skip_are_reported(kit, query):
    loss = data_loss.added_partition_starts_late(tp(0), 4)

    def script() -> Script:
        query.send(TaskLostData(task(0), loss))
        yield None

    query.run(script())
    assert kit.events.named("data_lost") == ((loss,),)


def test_new_partitions_are_read_by_live_tasks_with_the_fewest(kit, make):
    kit.cluster.add_partitions("t", 3)
    query = make(max_tasks=2)

    def script() -> Script:
        yield None
        query.channel.sent.clear()
        kit.cluster.add_partitions("t", 6)
        yield 1.5
        assert query.commands(task(0)) == [AssignPartitions(at(4, 0))]
        assert query.commands(task(1)) == [AssignPartitions(at(3, 0).merge(at(5, 0)))]
        query.report(task(1), at(5, 2))
        yield 1.5

    query.run(script())
    assert max(query.epochs.items())[1] == offsets(0, 0, 0, 0, 0, 2)
    assert len(query.runner.started) == 1


def test_a_task_that_runs_again_reads_the_partitions_that_were_added(kit, make):
    query = make(max_tasks=1)

    def script() -> Script:
        yield None
        kit.cluster.add_partitions("t", 3)
        yield 1.5
        query.start(task(0, "b"))
        yield None

    query.run(script())
    assert query.commands(task(0, "b"))[0] == AssignPartitions(offsets(0, 0, 0))


@pytest.mark.parametrize(("epoch_s", "seconds"), [(0.1, 1), (5, 5)])
def test_partitions_are_looked_for_once_an_epoch_and_at_most_once_a_second(
    kit, make, epoch_s, seconds
):
    query = make(epoch_s=epoch_s)

    def script() -> Script:
        yield None
        query.channel.sent.clear()
        kit.cluster.add_partitions("t", 3)
        yield seconds - 0.2
        assert query.channel.sent == []
        yield 0.4
        assert query.commands(task(0)) == [AssignPartitions(at(2, 0))]
        yield 0.5
        kit.cluster.add_partitions("t", 4)
        yield seconds - 0.8
        assert query.commands(task(1)) == []
        yield 0.5
        assert query.commands(task(1)) == [AssignPartitions(at(3, 0))]

    query.run(script())


def test_deleted_partitions_are_revoked_from_the_tasks_that_read_them(kit, make):
    kit.cluster.create_topic("t2", 1)
    query = make({"subscribePattern": "t.*", **LENIENT}, max_tasks=2)
    gone = tp(0, "t2")

    def script() -> Script:
        yield None
        query.channel.sent.clear()
        kit.cluster.delete_topic("t2")
        yield 1.5
        [(told, command)] = query.channel.sent
        assert (told, command) == (task(0), RevokePartitions(PartitionOffsets({gone: 0})))
        query.report(task(0), PartitionOffsets({gone: 9}))
        yield 1.5
        assert max(query.epochs.items())[1] == offsets(0, 0)
        query.channel.sent.clear()
        query.start(task(0, "b"))
        kit.cluster.add_partitions("t", 3)
        yield 1.5
        assert query.commands(task(0, "b")) == [
            AssignPartitions(at(0, 0)),
            AssignPartitions(at(2, 0)),
        ]

    query.run(script())


def test_partitions_are_not_looked_for_until_all_tasks_have_started(kit, query):
    query.runner.starts_tasks = False

    def script() -> Script:
        query.start(task(1))
        yield None
        kit.cluster.add_partitions("t", 3)
        yield 3
        assert query.commands(task(1)) == [AssignPartitions(at(1, 0))]
        query.start(task(0))
        yield 1.5
        assert query.commands(task(0)) == [AssignPartitions(at(0, 0)), AssignPartitions(at(2, 0))]

    query.run(script())


def test_tasks_go_on_while_no_broker_tells_the_partitions(kit, query, caplog):
    def script() -> Script:
        yield None
        query.lose_brokers(UNREACHABLE)
        yield 3
        query.find_brokers()
        kit.cluster.add_partitions("t", 3)
        yield 1.5

    query.run(script())
    assert (
        "partitions of a continuous query are not known: [KAFKA_BROKER_UNREACHABLE]" in caplog.text
    )
    assert AssignPartitions(at(2, 0)) in query.commands(task(0))
    assert len(query.runner.started) == 1


def test_new_partitions_whose_first_records_are_gone_end_the_query(kit, query):
    def script() -> Script:
        yield None
        kit.cluster.add_partitions("t", 3)
        kit.produce(3, partition=2)
        kit.cluster.delete_records({tp(2): 2})
        yield 2
        pytest.fail("the query did not end")

    with pytest.raises(DataLossError, match="t-2 starts from 2 instead of 0"):
        query.run(script())


def test_a_deleted_topic_ends_the_query(kit, query):
    def script() -> Script:
        yield None
        kit.cluster.delete_topic("t")
        yield 2
        pytest.fail("the query did not end")

    with pytest.raises(DataLossError, match=r"Set\(t-0, t-1\)"):
        query.run(script())


def test_the_loss_of_one_of_two_topics_names_its_partitions_alone(kit, make):
    kit.cluster.create_topic("t2", 1)
    query = make({"subscribe": "t,t2", **LENIENT})

    def script() -> Script:
        yield None
        kit.cluster.delete_topic("t2")
        yield 1.5
        assert query.stopped() == set()

    query.run(script())
    lost = kit.events.named("data_lost")
    assert lost == ((data_loss.partitions_deleted([tp(0, "t2")]),),)


def test_a_missing_topic_is_told_once_and_when_it_is_back(kit, make, caplog):
    kit.cluster.create_topic("t2", 1)
    query = make({"subscribe": "t,t2", **LENIENT})

    def script() -> Script:
        yield None
        for _ in range(2):
            kit.cluster.delete_topic("t2")
            yield 3.5
            kit.cluster.create_topic("t2", 1)
            yield 3.5

    query.run(script())
    lost = (data_loss.partitions_deleted([tp(0, "t2")]),)
    assert kit.events.named("data_lost") == (lost, lost)
    assert caplog.messages == ["Topics of a continuous query exist again: t2"] * 2


# Brokers that are slow or silent


def busy(query: ScriptedQuery, *, seconds: int = 60) -> Script:
    """Yield the script of tasks that report each second while brokers are silent."""
    yield 2
    query.slow_brokers(SILENT_S, "topics", "watermarks", "commit")
    for offset in range(seconds):
        query.report(task(0), at(0, offset))
        query.report(task(1), at(1, offset))
        yield 1


@pytest.mark.parametrize("seconds", range(5, 45, 3))
def test_stopping_does_not_wait_for_silent_brokers(make, time, seconds):
    query = make(GROUP)
    time.after(seconds, query.execution.stop)
    query.run(busy(query))
    assert time.seconds - seconds < MAX_WAIT_S


@pytest.mark.parametrize("seconds", range(5, 45, 3))
def test_a_failed_task_does_not_wait_for_silent_brokers(make, time, seconds):
    query = make(GROUP)
    seen = []

    def look() -> None:
        seen.append(query.stopped())
        query.execution.stop()

    time.after(seconds, lambda: query.fail(task(0)))
    time.after(seconds + MAX_WAIT_S, look)
    query.run(busy(query))
    assert seen[0] == {task(0), task(1)}


def test_epochs_are_logged_while_brokers_are_silent(make, time):
    query = make(GROUP)
    query.run(busy(query))
    assert len(query.epochs) > time.seconds / (2 * MAX_WAIT_S)


def test_stopping_ends_a_restart_that_waits_for_silent_brokers(query, time):
    def script() -> Script:
        yield 1
        query.slow_brokers(SILENT_S, "topics")
        query.runner.end("it broke")
        yield None

    time.after(20, query.execution.stop)
    query.run(script())
    assert time.seconds - 20 < MAX_WAIT_S
    assert len(query.runner.started) == 1


def test_a_restart_waits_for_silent_brokers_as_long_as_the_first_start(query, time, caplog):
    def script() -> Script:
        yield 1
        query.slow_brokers(SILENT_S, "topics")
        query.runner.end("it broke")
        time.after(30, query.find_brokers)
        yield 1

    query.run(script())
    assert len(query.runner.started) == 2
    assert caplog.text.count("start again") == 1


def test_brokers_that_take_seconds_tell_the_partitions(kit, query):
    def script() -> Script:
        yield None
        query.slow_brokers(3, "watermarks")
        kit.cluster.add_partitions("t", 3)
        yield 20

    query.run(script())
    assert AssignPartitions(at(2, 0)) in query.commands(task(0))


def test_offsets_that_a_group_did_not_get_are_committed_again(kit, make):
    """Also if no epoch follows."""
    query = make(GROUP)

    def script() -> Script:
        yield 2
        query.slow_brokers(SILENT_S, "commit")
        query.report(task(0), at(0, 7))
        yield 5
        del vars(kit.cluster)["commit"]
        kit.clock.sleep_ms(60_000)
        yield 5
        assert kit.cluster.committed("g") == offsets(7, 0)

    query.run(script())


def test_a_report_has_the_work_of_all_tasks(kit, query):
    kit.produce(5)
    kit.produce(7, partition=1)

    def script() -> Script:
        yield None
        query.report(task(0), at(0, 5), rows=5)
        query.report(task(1), at(1, 6), rows=6)
        yield 2

    query.run(script())
    [report] = query.reports
    assert (report.epoch, report.work.input_rows, report.tasks) == (1, 11, 2)
    assert (report.start, report.end, report.latest) == (
        offsets(0, 0),
        offsets(5, 6),
        offsets(5, 7),
    )


def test_the_work_of_a_short_query_is_reported_at_its_end(query):
    def script() -> Script:
        for offset in (2, 5):
            query.report(task(0), at(0, offset), rows=offset)
            yield 0.1
        assert query.reports == []

    query.run(script())
    [report] = query.reports
    assert (report.work.input_rows, report.end) == (7, offsets(5, 0))
