"""The time that the driver needs to plan a query."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark_kafka.bootstrap.container import closing_clients, container_for
from pyspark_kafka.domain.partition_offsets import PartitionOffsets

from .bench import CLIENTS, reader_options
from .results import MILLISECONDS, Comparison, Section
from .rounds import alternate
from .topics import partitions_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from pyspark_kafka import Container

    from .bench import Bench

    Plan = Callable[[Container], object]

ABOUT: Final = (
    "The driver's calls before any record is read: planning the ranges of a batch query "
    "(`KafkaBatch.plan_input_partitions`), and the latest offsets, which a stream needs in every "
    "trigger (`KafkaOffsetReader.latest`). The first call of a container connects; the warm call "
    "follows it."
)


def _ranges(container: Container) -> object:
    return container.batch().plan_input_partitions()


def _latest(container: Container) -> object:
    return container.offset_reader().latest(PartitionOffsets())


PLANS: Final[Mapping[str, Plan]] = {"ranges of a batch": _ranges, "latest offsets": _latest}


def measure_planning(bench: Bench) -> Section:
    """Compare the clients for topics of few and many partitions."""
    comparisons: list[Comparison] = []
    for partitions in bench.plan.partitions:
        topic = f"planning-{partitions}"
        bench.kafka.create_topic(topic, partitions)
        comparisons.extend(_comparisons(bench, topic, partitions_text(partitions)))
        # Thousands of partitions would slow the broker down for the rest of the run.
        bench.kafka.delete_topic(topic)
    return Section("planning", "Planning", ABOUT, MILLISECONDS, tuple(comparisons))


def _comparisons(bench: Bench, topic: str, size: str) -> Iterator[Comparison]:
    for name, plan in PLANS.items():
        for call, timed in (("first", _first_ms), ("warm", _warm_ms)):
            runs = {
                client: partial(timed, bench.kafka.bootstrap_servers, client, topic, plan)
                for client in CLIENTS
            }
            yield Comparison(f"{size}; {name}, {call}", alternate(runs, bench.plan))


def _first_ms(bootstrap_servers: str, client: str, topic: str, plan: Plan) -> float:
    with _container(bootstrap_servers, client, topic) as container:
        return _milliseconds(plan, container)


def _warm_ms(bootstrap_servers: str, client: str, topic: str, plan: Plan) -> float:
    with _container(bootstrap_servers, client, topic) as container:
        plan(container)
        return _milliseconds(plan, container)


def _container(
    bootstrap_servers: str, client: str, topic: str
) -> AbstractContextManager[Container]:
    return closing_clients(container_for(reader_options(bootstrap_servers, client, topic)))


def _milliseconds(plan: Plan, container: Container) -> float:
    began = time.perf_counter()
    plan(container)
    return (time.perf_counter() - began) * 1000
