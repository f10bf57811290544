"""One schedule, from a seed."""

from contextlib import nullcontext
from functools import cache
from unittest.mock import patch

from pyspark import TaskContext

from pyspark_kafka.application.writing import kafka_sink
from pyspark_kafka.domain.checkpoints.entries import SinkLogEntry
from pyspark_kafka.domain.writing import transaction

from ..engine.outcome import Outcome, ViolationError
from .continuous import virtual
from .faults import SinkSettings
from .oracle import Oracle
from .people import People
from .world import MAX_ENTRIES, World


def simulate(settings: SinkSettings) -> Outcome:
    world = World(settings)
    People(world, Oracle(world))
    violation = None
    try:
        with (
            patch.object(transaction, "LANES", settings.lanes),
            patch.object(TaskContext, "_taskContext", None),
            patch.object(kafka_sink, "MAX_ENTRIES", MAX_ENTRIES),
            # The same content is parsed again and again.
            patch.object(SinkLogEntry, "from_bytes", cache(SinkLogEntry.from_bytes)),
            virtual(world) if settings.has_continuous else nullcontext(),
        ):
            world.scheduler.run()
    except ViolationError as error:
        violation = error
    except Exception as error:  # noqa: BLE001  # it is the product's, or the simulator's
        violation = ViolationError("crash", repr(error))
    finally:
        world.scheduler.close()
    return Outcome(
        settings,
        violation,
        world.decisions.fired,
        world.told,
        world.known,
        {"ids": len(world.kafka.names)},
    )
