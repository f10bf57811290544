"""One schedule, from a seed."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from pyspark import TaskContext

from pyspark_kafka.application.checkpoints import logs
from pyspark_kafka.application.continuous import epochs
from pyspark_kafka.application.writing import kafka_sink, sink_checkpoint
from pyspark_kafka.domain import errors
from pyspark_kafka.domain.checkpoints.entries import SinkLogEntry
from pyspark_kafka.domain.writing import transaction

from ..engine.outcome import Outcome, violation_of
from ..engine.simulator import Change, changed
from . import ports
from .continuous import virtual
from .faults import SinkSettings
from .oracle import Oracle
from .people import People
from .world import MAX_ENTRIES, World

_CACHED: Final[tuple[tuple[Any, str], ...]] = (
    (kafka_sink, "is_id_of_query"),
    (kafka_sink, "log_prefix"),
    (transaction, "short_digest"),
    (SinkLogEntry, "from_bytes"),
    (sink_checkpoint, "read_batch_end"),
    (sink_checkpoint, "read_batch_conf"),
    (logs, "read_batch_end"),
    (epochs, "read_batch_conf"),
    (ports, "short_digest"),
)
"""Functions that a schedule calls with the same arguments again and again."""


def simulate(settings: SinkSettings) -> Outcome:
    world = World(settings)
    People(world, Oracle(world))

    def run() -> None:
        with changed(_changes(world)):
            world.scheduler.run()

    violation = violation_of(run)
    world.scheduler.close()
    return Outcome(
        settings,
        violation,
        world.decisions.fired,
        world.told,
        world.known,
        {"ids": len(world.kafka.names)},
    )


def _changes(world: World) -> Iterator[Change]:
    yield Change(transaction, "LANES", world.settings.lanes)
    yield Change(TaskContext, "_taskContext", None)
    yield Change(kafka_sink, "MAX_ENTRIES", MAX_ENTRIES)
    # There are no secrets.
    yield Change(errors, "without_secrets", str)
    for target, name in _CACHED:
        yield Change(target, name, cache(getattr(target, name)))
    if world.settings.has_continuous:
        yield from virtual(world)
