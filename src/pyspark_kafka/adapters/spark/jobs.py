"""The Spark jobs that run tasks of continuous queries."""

from __future__ import annotations

import logging
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

from pyspark import InheritableThread, TaskContext
from pyspark.sql.functions import udf

from ...domain.errors import OptionsError
from ...domain.text import describe_error, find_error, one_line
from ...ports.clock import Deadline
from ...ports.continuous import TaskRunner
from .session import is_classic, worker_variables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


log = logging.getLogger("pyspark_kafka")

DESCRIPTION: Final = "Continuous processing of pyspark-kafka"

_MAX_KILL_SECONDS: Final = 30.0
"""How long to wait for the tasks of a job that has ended.

Spark checks every 2 s whether a task was cancelled, and kills its Python worker
``spark.python.task.killTimeout`` (2 s) later (``MonitorThread`` in Spark's ``PythonRunner``).
"""

_CANCEL_AGAIN_SECONDS: Final = 0.5
"""How long after a cancellation to repeat it: Spark ignores one that comes before the job."""

_IDLE_TIMEOUT: Final = "spark.sql.execution.pyspark.udf.idleTimeoutSeconds"
_KILL_ON_IDLE: Final = "spark.sql.execution.pyspark.udf.killOnIdleTimeout"


@final
class SparkTaskRunner(TaskRunner):
    """Runs each task as a task of one Spark job, in the Python worker of an executor.

    A task that fails is run again ``spark.task.maxFailures`` - 1 times (never with a local master)
    before the job fails; so is a task whose executor is lost. When the job has ended, its cancelled
    tasks can run for some 4 s more, until Spark has killed their workers: the job counts as running
    until then. Spark Connect does not report that; there the job ends when Spark reports its end.
    """

    def __init__(
        self,
        spark: SparkSession,
        description: str = DESCRIPTION,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Take a session, classic or of Spark Connect; Spark's UI shows ``description``.

        ``variables`` are for the tasks' Python workers; Spark Connect ignores them.
        """
        self._spark = spark
        self._variables = variables
        self._description = description
        self._job: _Job | None = None

    def start(self, tasks: int, run: Callable[[int, str], None]) -> None:
        """Start a job; ``run`` is pickled by cloudpickle.

        :raises OptionsError: if Spark is set to kill Python workers that return no rows.
        """
        if self.is_running():
            raise RuntimeError("The last job is still running.")
        _check_settings(self._spark)
        group = job_group(self._spark, f"pyspark_kafka {uuid.uuid4()}", self._description)
        with worker_variables(self._spark, self._variables):
            frame = _frame(self._spark, tasks, run)
        self._job = _Job(self._spark, group, frame)

    def is_running(self) -> bool:
        return self._job is not None and self._job.is_running()

    def failure(self) -> str | None:
        return None if self._job is None else self._job.failure

    def cancel(self, timeout_s: float) -> None:
        if self._job is not None:
            self._job.cancel(timeout_s)

    def runs_failed_tasks_again(self) -> bool:
        # `spark.task.maxFailures` does not count with the master `local[n]`.
        return not re.match(r"local($|\[[^,]*\]$)", self._spark.conf.get("spark.master", "") or "")

    def available_slots(self) -> int | None:
        """Return how many tasks Spark's executors run at once, other jobs' tasks included.

        ``None`` if that is not known: on Spark Connect, or if executors are allocated dynamically.
        Executors that have not registered yet are not counted.
        """
        if not is_classic(self._spark):
            return None
        if self._spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true":
            return None
        context = self._spark.sparkContext._jsc.sc()  # noqa: SLF001 - it has no public getter
        try:
            # Private in Scala: Spark itself asks it before it runs a job with a barrier.
            profile = context.resourceProfileManager().defaultResourceProfile()
            return int(context.maxNumConcurrentTasks(profile))
        except Exception:
            log.debug("Cannot tell how many tasks Spark can run at once", exc_info=True)
            return None


@final
class _Job:
    """A Spark job, and the driver's thread that waits for its end."""

    def __init__(self, spark: SparkSession, group: JobGroup, frame: DataFrame) -> None:
        self.failure: str | None = None
        self._group = group
        self._frame = frame
        self._is_cancelled = False
        # Inherits the scheduler pool of the caller.
        self._thread = InheritableThread(
            self._run, session=spark, name="pyspark_kafka job", daemon=True
        )
        self._thread.start()

    def is_running(self) -> bool:
        """Return whether the job or one of its tasks has not ended."""
        return self._thread.is_alive()

    def cancel(self, timeout_s: float) -> None:
        """Cancel the job, and wait until its tasks have ended."""
        deadline = Deadline.after(timeout_s)
        self._is_cancelled = self.is_running()
        while self.is_running():
            self._interrupt()
            self._thread.join(min(_CANCEL_AGAIN_SECONDS, deadline.remaining))
            if deadline.has_passed:
                return

    def _run(self) -> None:
        try:
            self._group.join()
            if not self._is_cancelled:
                self._frame.collect()
        except Exception as error:
            log.debug("A job of a continuous query ended", exc_info=True)
            if not self._is_cancelled:
                self.failure = self._group.describe_failure(error)
        Deadline.after(_MAX_KILL_SECONDS).poll(self._have_tasks_ended, 0.1)

    def _have_tasks_ended(self) -> bool:
        try:
            return self._group.active_tasks() == 0
        except Exception:  # noqa: BLE001 - Spark has stopped, and its tasks with it
            return True

    def _interrupt(self) -> None:
        try:
            self._group.cancel()
        except Exception:
            log.debug("Cannot cancel a job of a continuous query", exc_info=True)


def _frame(spark: SparkSession, tasks: int, run: Callable[[int, str], None]) -> DataFrame:
    """Return a data frame with a row and a partition for each slot, which runs its task.

    A plain UDF: those that take Arrow need pandas. It is nondeterministic, so that the optimizer
    neither drops nor repeats it.
    """

    def kafka_task(slot: int) -> None:
        run(slot, _attempt())

    return spark.range(0, tasks, 1, numPartitions=tasks).select(
        udf(kafka_task, "void", useArrow=False).asNondeterministic()("id")
    )


def _attempt() -> str:
    """Return Spark's name of this attempt, and random digits.

    Spark's numbers alone are unique within a session only.
    """
    context = TaskContext.get()
    assert context is not None  # noqa: S101 - Spark sets it before it calls a UDF
    spark_name = f"{context.stageId()}.{context.attemptNumber()}.{context.taskAttemptId()}"
    return f"{spark_name}-{uuid.uuid4().hex[:8]}"


def _check_settings(spark: SparkSession) -> None:
    timeout = spark.conf.get(_IDLE_TIMEOUT, "0") or "0"
    if spark.conf.get(_KILL_ON_IDLE, "false") == "true" and re.match("0*[1-9]", timeout):
        problem = (
            "Spark would kill the query's tasks, which return no rows: "
            f"'{_IDLE_TIMEOUT}' is {timeout}, and '{_KILL_ON_IDLE}' is true (by default it is "
            "'spark.python.worker.killOnIdleTimeout'). "
            f"Set '{_KILL_ON_IDLE}' to false."
        )
        raise OptionsError([problem])
    if spark.conf.get("spark.speculation", "false") == "true":
        log.warning(
            "'spark.speculation' is true: Spark can run a task of a continuous query twice, of "
            "which one only reads and writes. It needs a free slot for that, and gains nothing."
        )


class JobGroup(ABC):
    """The jobs of the thread that called ``join``."""

    @abstractmethod
    def join(self) -> None:
        """Put the jobs that this thread starts from now on into this group."""

    @abstractmethod
    def cancel(self) -> None:
        """Cancel the jobs of the group. Returns before their tasks have ended."""

    @abstractmethod
    def active_tasks(self) -> int:
        """Return how many tasks of the group run, or 0 where Spark does not report it."""

    def describe_failure(self, error: Exception) -> str:
        """Return on one line why a job of the group failed, from Spark's error."""
        return summarize_failure(str(error))


def job_group(spark: SparkSession, name: str, description: str) -> JobGroup:
    """Return a new group; ``name`` is unique, and Spark's UI shows ``description``."""
    if is_classic(spark):
        return _ClassicJobGroup(spark, name, description)
    return _ConnectJobGroup(spark, name)


@final
class _ClassicJobGroup(JobGroup):
    """A job group, like that of Spark's own streaming queries.

    No tag: ``SparkSession.interruptTag`` finds only tags that were added by the thread that calls
    it, or by a thread that this one inherits from.
    """

    def __init__(self, spark: SparkSession, name: str, description: str) -> None:
        self._context = spark.sparkContext
        self._name = name
        self._description = description

    def join(self) -> None:
        self._context.setJobGroup(self._name, self._description, interruptOnCancel=True)

    def cancel(self) -> None:
        self._context.cancelJobGroup(self._name)

    def active_tasks(self) -> int:
        tracker = self._context.statusTracker()
        jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(self._name))
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return sum(stage.numActiveTasks for stage in stages if stage)

    def describe_failure(self, error: Exception) -> str:
        # Not installed with Spark Connect's own package, pyspark-client.
        from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

        if isinstance(error, (Py4JNetworkError, OSError)):
            return f"The JVM of Spark's driver has ended: {describe_error(error)}"
        return super().describe_failure(error)


@final
class _ConnectJobGroup(JobGroup):
    """A tag of operations, which Spark Connect interrupts from any thread."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark = spark
        self._name = name

    def join(self) -> None:
        self._spark.addTag(self._name)

    def cancel(self) -> None:
        self._spark.interruptTag(self._name)

    def active_tasks(self) -> int:
        return 0


_TRACEBACK: Final = "Traceback (most recent call last):"

_STAGE_FAILURE: Final = re.compile(r"most recent failure: (?P<reason>[^\n]+)")
"""The scheduler's reason for a task that failed outside of Python, such as a dead worker."""

_JAVA_ERROR: Final = re.compile(r"^: (?:[\w.$]+: )?(?P<text>[^\n]+)", re.MULTILINE)
"""The line of a Java exception as Py4J prints it, without the exception's class."""


def summarize_failure(text: str) -> str:
    """Return one line: this library's error in it, or a task's exception, or Spark's reason."""
    ours = find_error(text)
    if ours is not None:
        return one_line(ours.text)
    if _TRACEBACK in text:
        return _exception_line(text.rpartition(_TRACEBACK)[2])
    found = _STAGE_FAILURE.search(text)
    if found is not None:
        return found["reason"].strip()
    java = _JAVA_ERROR.search(text)
    return java["text"].strip() if java is not None else text.strip().partition("\n")[0]


def _exception_line(traceback: str) -> str:
    """Return the exception after the frames of a traceback, which are indented."""
    lines = [line for line in traceback.splitlines() if line.strip() and not line[0].isspace()]
    return lines[0].strip() if lines else one_line(traceback)
