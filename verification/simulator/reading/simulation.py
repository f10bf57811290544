"""One schedule, from a seed."""

from unittest.mock import patch

from pyspark_kafka.adapters.kafka_format import column_buffers
from pyspark_kafka.adapters.kafka_python import brokers, connections, fetcher
from pyspark_kafka.application.continuous import task
from pyspark_kafka.domain.reading import expected_ranges

from ..engine.outcome import Outcome, violation_of
from .faults import ReadingSettings
from .offsets import SimulatedOffsets
from .oracle import Oracle
from .patches import simulated
from .ranges import RangeReader
from .stream import COMMANDS_S, ReaderDiedError, StreamReader
from .trouble import Trouble
from .world import World


def simulate(settings: ReadingSettings) -> Outcome:
    world = World(settings)
    oracle = Oracle(world)
    Trouble(world)
    reader = StreamReader(world, oracle) if settings.is_stream else RangeReader(world, oracle)
    world.reader = world.scheduler.spawn("reader", reader.run)
    world.died_error = ReaderDiedError

    def run() -> None:
        with (
            simulated(world.environment, settings.seed),
            patch.object(brokers, "KafkaPythonOffsetFetcher", lambda _: SimulatedOffsets(world)),
            patch.object(task, "COMMANDS_EVERY_S", COMMANDS_S),
            patch.object(column_buffers, "MAX_ROWS", settings.rows),
            patch.object(fetcher, "MAX_ROWS", settings.rows),
            patch.object(fetcher, "EAGER_BYTES", settings.eager_bytes),
            patch.object(fetcher, "RANGE_BYTES", settings.range_bytes),
            patch.object(brokers, "RANGE_BYTES", settings.range_bytes),
            patch.object(expected_ranges, "MAX_TOGETHER", settings.together),
            patch.object(connections, "_DEFAULT_FRAME_BYTES", settings.buffer_bytes),
        ):
            try:
                world.run()
            finally:
                world.scheduler.close()

    violation = violation_of(run)
    return Outcome(settings, violation, world.decisions.fired, world.told, world.known, world.sizes)
