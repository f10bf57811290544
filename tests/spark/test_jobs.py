"""The tasks of a continuous query as a Spark job."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from pyspark_kafka.adapters.spark.jobs import SparkTaskRunner
from pyspark_kafka.domain.errors import OptionsError, UnknownTopicError
from pyspark_kafka.testing import TaskRunnerContract, await_until
from pyspark_kafka.testing.task_runner_contract import (
    MAX_SECONDS,
    TASKS,
    Rendezvous,
    WaitingTask,
    await_end,
    fail_in_slot_1,
)

VARIABLE: Final = "PYSPARK_KAFKA_TESTED"
PROGRAM: Final = Path(__file__).parent / "programs" / "lose_executor.py"


@pytest.fixture
def runner(spark):
    runner = SparkTaskRunner(spark, "a test's query")
    yield runner
    runner.cancel(30)


class TestSparkTaskRunner(TaskRunnerContract):
    @pytest.fixture
    def runner(self, runner):
        return runner


def exit_at_once(_slot: int, _attempt: str) -> None:
    os._exit(3)


def miss_a_topic(_slot: int, _attempt: str) -> None:
    raise UnknownTopicError(["nope"], "subscribe", "h:9092")


def require_a_variable(_slot: int, _attempt: str) -> None:
    assert os.environ[VARIABLE] == "yes"


def test_tasks_have_the_variables_that_they_are_given(spark):
    runner = SparkTaskRunner(spark, variables={VARIABLE: "yes"})
    runner.start(1, require_a_variable)
    await_end(runner)
    assert runner.failure() is None
    assert VARIABLE not in spark.sparkContext.environment


def test_a_cancellation_ends_tasks_that_do_not_end_by_themselves(runner, spark, tmp_path):
    """When it returns the slots are free: Spark no longer counts any task of the job."""
    rendezvous = Rendezvous(tmp_path)
    runner.start(TASKS, WaitingTask(rendezvous))
    await_until(rendezvous.have_all_arrived, MAX_SECONDS)
    runner.cancel(30)
    assert not runner.is_running()
    assert runner.failure() is None
    assert runner._job is not None
    assert runner._job._group.active_tasks() == 0
    assert spark.range(0, TASKS, 1, TASKS).count() == TASKS


def test_spark_names_the_job_in_its_ui(runner, spark, tmp_path):
    rendezvous = Rendezvous(tmp_path)
    runner.start(1, WaitingTask(rendezvous))
    await_until(lambda: bool(rendezvous.arrivals()), MAX_SECONDS)
    store = spark.sparkContext._jsc.sc().statusStore()
    [job] = spark.sparkContext.statusTracker().getActiveJobsIds()
    assert store.job(job).description().get() == "a test's query"
    rendezvous.release()


def test_a_task_that_fails_ends_those_that_do_not(runner, tmp_path):
    wait = WaitingTask(Rendezvous(tmp_path))

    def run(slot: int, attempt: str) -> None:
        fail_in_slot_1(slot, attempt)
        wait(slot, attempt)

    runner.start(TASKS, run)
    await_end(runner)
    assert runner.failure() == "ValueError: slot 1 fails"


def test_an_error_of_this_library_is_the_failure(runner):
    runner.start(1, miss_a_topic)
    await_end(runner)
    assert runner.failure() == str(UnknownTopicError(["nope"], "subscribe", "h:9092"))


def test_a_python_worker_that_exits_is_a_failure(runner):
    runner.start(1, exit_at_once)
    await_end(runner)
    failure = runner.failure()
    assert failure is not None
    assert failure.startswith("Lost task 0.0 in stage")
    assert "Python worker exited unexpectedly (crashed)" in failure


def test_executors_and_spark_itself_may_be_lost(tmp_path):
    """Spark runs a lost task as another attempt of its slot; without a driver the job fails.

    A Python worker ends with its executor.
    """
    done = subprocess.run(
        [sys.executable, PROGRAM, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("failure without JVM").startswith("The JVM of Spark's driver has ended: ")
    assert found == {
        "slots": 1,
        "runs failed tasks again": True,
        "slots run": [0, 0],
        "running": True,
        "old worker": False,
        "running after cancel": False,
        "failure": None,
    }


def test_the_slots_of_a_local_master_are_known(runner):
    assert runner.available_slots() == 2
    assert not runner.runs_failed_tasks_again()


def test_a_spark_that_kills_idle_workers_is_refused(runner, spark):
    """Spark takes a task that returns no rows for idle; the error names the setting."""
    prefix = "spark.sql.execution.pyspark.udf"
    spark.conf.set(f"{prefix}.killOnIdleTimeout", "true")
    try:
        runner.start(1, fail_in_slot_1)
        await_end(runner)
        spark.conf.set(f"{prefix}.idleTimeoutSeconds", "60")
        with pytest.raises(OptionsError, match=r"Set 'spark\.sql\.\S+killOnIdle\S+' to false"):
            runner.start(1, fail_in_slot_1)
    finally:
        spark.conf.unset(f"{prefix}.killOnIdleTimeout")
        spark.conf.unset(f"{prefix}.idleTimeoutSeconds")


def test_speculation_is_warned_about(runner, spark, caplog):
    """A speculative task is safe, and useless."""
    # Spark reads it at its start only.
    conf = spark._jsparkSession.sessionState().conf()
    conf.setConfString("spark.speculation", "true")
    try:
        with caplog.at_level(logging.WARNING, "pyspark_kafka"):
            runner.start(1, fail_in_slot_1)
    finally:
        conf.unsetConf("spark.speculation")
    await_end(runner)
    assert "'spark.speculation' is true" in caplog.text
