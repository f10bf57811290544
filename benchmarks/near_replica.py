"""The latency of continuous queries that read from a follower or the leader (KIP-392)."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, final

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.admin import known_leaders

from .bench import CLIENTS
from .end_to_end import VALUE_BYTES, Load, Route, measure
from .pipelines import Pipeline, continuous_query
from .results import Latencies, LatencyComparison, LatencySection, Percentiles
from .rounds import run_rounds

if TYPE_CHECKING:
    from pyspark_kafka.brokers.settings import Node

    from .bench import Bench

BROKERS: Final = 3
RATES: Final = (10.0, 100.0)
WARM_UPS: Final = 4
"""The factor of the usual warm-up time, at the load's own rate: three brokers on a small machine do
not keep up with more."""

SELECTOR: Final = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"
}

DISTANCES: Final = {"leader": 0, "follower": 1}
"""The replicas to read from, and their distance from the leader in brokers."""

ABOUT: Final = (
    f"Continuous queries pass records of {VALUE_BYTES} B on from one topic to another; the latency "
    "is the time from a sender to a receiver, by one clock. The three brokers are each in a rack "
    "of their own, on one machine without a network between them. The topic that is read has three "
    "replicas, and one partition. `kafka.client.rack` is that of its leader, or of a follower."
)

_NUMBERS: Final = itertools.count()


@final
class RackedCluster(KafkaCluster):
    """Brokers in one rack each."""

    def _properties(self, node: Node) -> dict[str, str]:
        return super()._properties(node) | {"broker.rack": _rack(node.id)}


def measure_near_replica(bench: Bench) -> LatencySection:
    """Compare reading from a leader and from a follower, by each client."""
    plan = replace(
        bench.plan,
        warm_up_rounds=0,
        runs=min(bench.plan.runs, bench.plan.max_continuous_rounds),
    )
    with RackedCluster(BROKERS, config=SELECTOR) as kafka:
        comparisons = []
        for rate in RATES:
            warm_up_seconds = WARM_UPS * plan.latency_warm_up_seconds
            load = Load(rate, plan.latency_seconds, warm_up_seconds, min_warm_up_rate=rate)
            runs = {
                f"{client}, {role}": partial(_latencies, kafka, client, load, distance)
                for client in CLIENTS
                for role, distance in DISTANCES.items()
            }
            found = run_rounds(runs, plan)
            latencies = tuple(Latencies(name, figures) for name, figures in found.items())
            comparisons.append(LatencyComparison(load.text, latencies))
    return LatencySection(
        "near-replica",
        "Continuous processing, latency from a follower",
        ABOUT,
        tuple(comparisons),
        peers=tuple(f"{client}, leader" for client in CLIENTS),
    )


def _latencies(kafka: KafkaCluster, client: str, load: Load, distance: int) -> Percentiles:
    number = next(_NUMBERS)
    source, sink = f"near-source-{number}", f"near-sink-{number}"
    kafka.create_topic(source, replication_factor=BROKERS)
    kafka.create_topic(sink)
    first_port = int(kafka.bootstrap_servers.split(",")[0].rpartition(":")[2])
    leaders = known_leaders(first_port, source)
    if not leaders:
        raise RuntimeError(f"{source} has no leader")
    near = {"kafka.client.rack": _rack((leaders[0] + distance) % BROKERS)}
    pipeline = Pipeline(continuous_query(client, near=near))
    route = Route(kafka.bootstrap_servers, source, sink, 1)
    with pipeline.open(route):
        found = measure(route, load, pipeline.isolation_level)
    for topic in (source, sink):
        kafka.delete_topic(topic)
    return found


def _rack(broker: int) -> str:
    return f"rack-{broker}"
