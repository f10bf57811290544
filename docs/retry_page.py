"""The page of retries: the outcome of each error, by the place where it is raised."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from error_entries import SECTIONS

from pyspark_kafka.adapters.spark.data_source import CatalogTableError, SaveModeError
from pyspark_kafka.application.checkpoints.offsets import QueryIsRunningError, UnusableOffsetsError
from pyspark_kafka.application.continuous.errors import (
    NotEnoughSlotsError,
    RestartsExhaustedError,
    TaskFailedError,
    UncertainEndError,
)
from pyspark_kafka.domain.errors import NoCheckpointError, Recovery
from pyspark_kafka.domain.reading.errors import (
    NoCommittedOffsetError,
    NoOffsetForTimestampError,
    OffsetsMismatchError,
    TimestampsMismatchError,
    TopicOffsetsMismatchError,
)
from pyspark_kafka.domain.values.errors import UnknownSchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark_kafka.domain.errors import PysparkKafkaError


class Place(enum.Enum):
    """Where an error is raised."""

    TASK = "task"
    CONTINUOUS = "continuous query"
    SINK = "exactly-once sink"
    LOG = "metadata log"
    REGISTRY = "registry"


class Outcome(enum.Enum):
    """The step after an error, as the page shows it."""

    RETRY = "retry"
    FAIL = "fail the task"
    END = "end the query"


_RETRIED: Final = {**dict.fromkeys(Recovery, Outcome.END), Recovery.RETRIABLE: Outcome.RETRY}
_OUTCOMES: Final = {
    Place.TASK: dict.fromkeys(Recovery, Outcome.FAIL),
    Place.CONTINUOUS: _RETRIED,
    Place.SINK: dict.fromkeys(Recovery, Outcome.END),
    Place.LOG: _RETRIED,
    Place.REGISTRY: dict.fromkeys(Recovery, Outcome.FAIL),
}

_EVERYWHERE: Final = frozenset({Place.TASK, Place.CONTINUOUS, Place.SINK})
_TASKS: Final = frozenset({Place.TASK, Place.CONTINUOUS})

_PLACES: Final = {
    "Options and packages": _EVERYWHERE | {Place.LOG},
    "Brokers and topics": _EVERYWHERE,
    "Logins, TLS and rights": _EVERYWHERE,
    "Starting and ending offsets": _TASKS,
    "Lost records": _TASKS,
    "Records that cannot be read": _TASKS,
    "Schema registries": _TASKS | {Place.REGISTRY},
    "Writing": _TASKS,
    "Exactly-once and checkpoints": _EVERYWHERE | {Place.LOG},
    "Continuous queries": frozenset({Place.CONTINUOUS}),
}
"""Where the errors of each section are raised; the driver raises those of other sections."""

_ON_THE_DRIVER: Final = (
    CatalogTableError,
    NoCommittedOffsetError,
    NoOffsetForTimestampError,
    NoCheckpointError,
    NotEnoughSlotsError,
    OffsetsMismatchError,
    QueryIsRunningError,
    RestartsExhaustedError,
    SaveModeError,
    TaskFailedError,
    TimestampsMismatchError,
    TopicOffsetsMismatchError,
    UncertainEndError,
    UnusableOffsetsError,
)
"""The errors of these sections that only the driver raises."""

HEAD: Final = """\
<!-- make docs makes this page from the errors of the code; do not edit it. -->

# Retries

This page shows which errors are retried. The Kafka clients and the registry's client retry requests
within their time-outs, and then raise an error. Every error of this library has an attribute
`recovery`:

| `recovery` | meaning |
|---|---|
{recoveries}
The columns of the table are the places where errors are raised:

- **task**: a task of a batch or a micro-batch. Spark reruns a failed task, up to
  `spark.task.maxFailures` times, after any error.
- **continuous query**: a task of a continuous query. *Retry* restarts the tasks at the
  acknowledged offsets, within the [limits of restarts](../guides/continuous.md#failures).
- **exactly-once sink**: the driver, when it commits a micro-batch. The next run of the query
  finishes the batch, or writes it again.
- **metadata log**: the epochs of a continuous query. *Retry* lasts for `log_outage_s`.
- **registry**: a look-up of a schema. *Retry* lasts for 3 seconds, since servers of a registry may
  lag.

With the setting in the last column, the query does not fail: it counts or reports the records.

| condition | `recovery` | {places} | counted instead with |
|---|---|{lines}---|
"""

DRIVER: Final = """
Only the driver raises the other [errors](errors.md), which end the query or the command.
"""


def retries_page() -> str:
    """Return the page of retries."""
    recoveries = "".join(f"| `{one.name}` | {one.value} |\n" for one in Recovery)
    places = " | ".join(place.value for place in Place)
    head = HEAD.format(recoveries=recoveries, places=places, lines="---|" * len(Place))
    return head + "".join(_row(error, outcomes) for error, outcomes in raised()) + DRIVER


def raised() -> Iterator[tuple[PysparkKafkaError, Mapping[Place, Outcome]]]:
    """Yield the errors that are raised in these places, with the outcome in each place."""
    for title, entries in SECTIONS.items():
        for entry in entries:
            if found := _outcomes(entry.error, _PLACES.get(title, frozenset())):
                yield entry.error, found


def _outcomes(error: PysparkKafkaError, places: frozenset[Place]) -> dict[Place, Outcome]:
    if isinstance(error, _ON_THE_DRIVER):
        return {}
    found = {place: _OUTCOMES[place][error.recovery] for place in Place if place in places}
    if isinstance(error, UnknownSchemaError):
        found[Place.REGISTRY] = Outcome.RETRY
    return found


def _row(error: PysparkKafkaError, outcomes: Mapping[Place, Outcome]) -> str:
    cells = " | ".join(outcomes[place].value if place in outcomes else "" for place in Place)
    condition = f"[{error.condition}](errors.md#{error.condition.lower()})"
    return f"| {condition} | `{error.recovery.name}` | {cells} | {_settings(error)} |\n"


def _settings(error: PysparkKafkaError) -> str:
    return " or ".join(f"`{one}`" for one in error.tolerated_by)
