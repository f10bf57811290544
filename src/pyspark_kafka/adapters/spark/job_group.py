"""The jobs that a thread starts, to cancel them from others; classic Spark or Spark Connect."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

from pyspark.sql import SparkSession

from ...domain.error_text import describe_error
from .failure_text import summarize_failure


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
        """Return how many tasks of the group run, or 0 where Spark does not tell."""

    def describe_failure(self, error: Exception) -> str:
        """Return on one line why a job of the group failed, from what Spark raised."""
        return summarize_failure(str(error))


def is_classic(session: object) -> bool:
    """Return whether a session is not one of Spark Connect, whose class is unrelated."""
    return isinstance(session, SparkSession)


def job_group(spark: SparkSession, name: str, description: str) -> JobGroup:
    """Return a new group; ``name`` is unique, and ``description`` is what Spark's UI shows."""
    if is_classic(spark):
        return _ClassicJobGroup(spark, name, description)
    return _ConnectJobGroup(spark, name)


@final
class _ClassicJobGroup(JobGroup):
    """A job group, as Spark's own streaming queries have one.

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
