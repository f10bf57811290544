"""One schedule, from a seed."""

from contextlib import nullcontext
from functools import cache
from unittest.mock import patch

from pyspark import TaskContext

from pyspark_kafka.application.writing import kafka_sink
from pyspark_kafka.domain.checkpoints.entries import SinkLogEntry
from pyspark_kafka.domain.writing import transaction

from ..engine.outcome import Outcome, violation_of
from .continuous import virtual
from .faults import SinkSettings
from .oracle import Oracle
from .people import People
from .world import MAX_ENTRIES, World


def simulate(settings: SinkSettings) -> Outcome:
    world = World(settings)
    People(world, Oracle(world))

    def run() -> None:
        with (
            patch.object(transaction, "LANES", settings.lanes),
            patch.object(TaskContext, "_taskContext", None),
            patch.object(kafka_sink, "MAX_ENTRIES", MAX_ENTRIES),
            # The same content is parsed again and again.
            patch.object(SinkLogEntry, "from_bytes", cache(SinkLogEntry.from_bytes)),
            virtual(world) if settings.has_continuous else nullcontext(),
        ):
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
