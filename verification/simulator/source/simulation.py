"""One schedule, from a seed."""

from unittest.mock import patch

from pyspark_kafka.adapters.memory import reading
from pyspark_kafka.adapters.spark import stream_reader
from pyspark_kafka.application.reading import micro_batch_execution

from ..engine.outcome import Outcome, violation_of
from .faults import SourceSettings
from .frames import Analysts
from .people import People
from .world import World


def simulate(settings: SourceSettings) -> Outcome:
    world = World(settings)
    if settings.is_batch:
        Analysts(world)
    else:
        People(world)

    def run() -> None:
        with (
            patch.object(reading, "RECORDS_PER_BATCH", settings.fetch_records),
            patch.object(stream_reader, "freeze_loaded_objects", lambda: None),
            patch.object(micro_batch_execution, "epoch_ms", lambda: world.scheduler.now_ms),
        ):
            world.scheduler.run()

    violation = violation_of(run)
    world.scheduler.close()
    return Outcome(settings, violation, world.decisions.fired, world.told, world.known)
