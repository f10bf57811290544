"""The errors of continuous queries.

PysparkKafkaError
├── FunctionError          the query's function raised, or returned something else
├── NotEnoughSlotsError    not all tasks of a query could start
├── TaskFailedError        a task ended with an error that a restart would meet again
├── RestartsExhaustedError tasks failed too often
└── UncertainEndError      a stopped query may still write
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...domain.errors import FactsError, Fault, PysparkKafkaError, Recovery

if TYPE_CHECKING:
    from ...domain.topic_partition import TopicPartition


class FunctionError(FactsError):
    """The query's function failed for the records ``[start, end)`` of a partition."""

    condition = "KAFKA_FUNCTION_FAILED"
    fault = Fault.USER
    recovery = Recovery.PERMANENT
    text = (
        "The function of the continuous query failed for topic {partition.topic} partition "
        "{partition.partition} offsets [{start}, {end}): {reason}. Correct the function, or "
        "catch the error in it; the query then continues with these records."
    )
    partition: TopicPartition
    start: int
    end: int
    reason: str


class NotEnoughSlotsError(PysparkKafkaError):
    """Spark could not run all tasks of a query at once."""

    condition = "KAFKA_NOT_ENOUGH_SLOTS"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.RETRIABLE

    def __init__(self, tasks: int, slots: int, waited: str = "") -> None:
        super().__init__(
            f"A continuous query with {tasks} tasks needs as many task slots at once, and only "
            f"{slots} were free{waited}: {tasks - slots} are missing. Add cores to the cluster, "
            "end other jobs, or set 'tasks' to a lower number, so that a task reads more "
            "partitions."
        )


class TaskFailedError(PysparkKafkaError):
    """A task ended with an error; the message is the task's, with its condition."""

    condition = "KAFKA_TASK_FAILED"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.PERMANENT

    def __init__(self, text: str) -> None:
        super().__init__(text)
        if text.startswith("["):
            # The condition that users search for is the task's own.
            self.args = (text,)


class RestartsExhaustedError(PysparkKafkaError):
    """The tasks of a query failed more often than they are started again."""

    condition = "KAFKA_TOO_MANY_RESTARTS"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.RETRIABLE

    def __init__(self, restarts: int, within_s: float, reason: str) -> None:
        super().__init__(
            f"The tasks of the continuous query failed again after {restarts} restarts within "
            f"{within_s:g} s: {reason.rstrip('.')}. Remove the cause and start the query again; it "
            "continues after its last epoch."
        )


class UncertainEndError(FactsError):
    """A query was stopped, and something may still be written."""

    condition = "KAFKA_UNCERTAIN_END"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.RETRIABLE
    text = (
        "The continuous query was stopped, but {reason}. What is still written is not in its "
        "last epoch. {next_step}"
    )
    reason: str
    next_step: str


def without_advice(error: PysparkKafkaError) -> str:
    """Return the first sentence of an error, for a text that has its own advice."""
    return str(error).partition(". ")[0].rstrip(".")
