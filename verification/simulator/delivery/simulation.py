"""One schedule, from a seed."""

from pyspark_kafka.adapters.confluent import record_writer, stream_sinks
from pyspark_kafka.ports import clock

from ..engine.outcome import Outcome, violation_of
from ..engine.simulator import Change, changed
from ..sink.threads import VirtualTime
from .faults import DeliverySettings
from .query import Query, SimulatedCluster
from .world import World


def simulate(settings: DeliverySettings) -> Outcome:
    world = World(settings)
    Query(world)

    def cluster(*_: object) -> SimulatedCluster:
        return SimulatedCluster(world)

    changes = [
        Change(clock, "time", VirtualTime(world.scheduler)),
        *(Change(module, "Cluster", cluster) for module in (record_writer, stream_sinks)),
    ]

    def run() -> None:
        with changed(changes):
            world.scheduler.run()
            world.scheduler.close()

    return Outcome(settings, violation_of(run), world.decisions.fired, world.told)
