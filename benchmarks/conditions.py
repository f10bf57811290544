"""``python -m benchmarks.conditions``: the latency of continuous queries under conditions.

Of the first record after an idle minute, with short and long epochs, and with a slow checkpoint.
"""

from __future__ import annotations

import argparse
import itertools
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

from pyspark_kafka.brokers import KafkaCluster

from .bench import CLIENTS, Bench
from .continuous import PEERS, compare
from .end_to_end import Load
from .pipelines import PIPELINES, Pipeline, continuous_query
from .plan import Plan
from .results import LatencyComparison, LatencySection
from .tables import as_text
from .topics import Topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

EPOCHS: Final = ("100 milliseconds", "10 seconds")
WRITE_SECONDS: Final = 0.1
IDLE_SECONDS: Final = 60
WARM_UP_SECONDS: Final = 4.0
LOAD: Final = Load(rate=100, seconds=25, warm_up_seconds=WARM_UP_SECONDS)
"""A load of several epochs; even one of the long kind is more than a percent of it."""

_NUMBERS: Final = itertools.count()


class SlowBucket(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no type information
    """A bucket to which each write takes ``WRITE_SECONDS``."""

    protocol = "gs"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        stripped: str = super()._strip_protocol(path.removeprefix(f"{cls.protocol}://"))
        return stripped

    def pipe_file(self, *args: Any, **kwargs: Any) -> None:
        """Write an object."""
        time.sleep(WRITE_SECONDS)
        super().pipe_file(*args, **kwargs)


@contextmanager
def slow_checkpoint() -> Iterator[str]:
    """Yield a directory in a slow bucket of this process."""
    fsspec.register_implementation(SlowBucket.protocol, SlowBucket, clobber=True)
    yield f"{SlowBucket.protocol}://bucket/{next(_NUMBERS)}"


def idle(bench: Bench, clients: Sequence[str]) -> LatencyComparison:
    """Compare with the peers, in one round, while a record comes each minute."""
    pipelines = {name: PIPELINES[name] for name in (*PEERS, *clients)}
    minutes = bench.plan.runs
    load = Load(1 / IDLE_SECONDS, minutes * IDLE_SECONDS, WARM_UP_SECONDS)
    return compare(replace(bench, plan=replace(bench.plan, runs=1)), pipelines, load)


def epochs(bench: Bench, clients: Sequence[str]) -> LatencyComparison:
    """Compare short epochs with long ones."""
    pipelines = {
        f"{client}, {epoch}": Pipeline(continuous_query(client, epoch=epoch))
        for client in clients
        for epoch in EPOCHS
    }
    return compare(bench, pipelines, LOAD)


def slow_checkpoints(bench: Bench, clients: Sequence[str]) -> LatencyComparison:
    """Compare a local checkpoint with one to which each write is slow."""
    pipelines: dict[str, Pipeline] = {}
    for client in clients:
        slow = continuous_query(client, make_checkpoint=slow_checkpoint)
        pipelines[client] = PIPELINES[client]
        pipelines[f"{client}, {WRITE_SECONDS * 1000:.0f} ms a write"] = Pipeline(slow)
    return compare(bench, pipelines, LOAD)


CONDITIONS: Final[Mapping[str, Callable[[Bench, Sequence[str]], LatencyComparison]]] = {
    "idle": idle,
    "epochs": epochs,
    "slow-checkpoint": slow_checkpoints,
}


def main() -> None:
    """Print a table for each of the chosen conditions."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conditions", description=__doc__)
    parser.add_argument("conditions", nargs="*", help=f"of {', '.join(CONDITIONS)}; all by default")
    parser.add_argument(
        "--clients", nargs="+", choices=CLIENTS, default=CLIENTS, help="clients of the queries"
    )
    parser.add_argument("--runs", type=int, default=2, help="rounds, or idle minutes (2)")
    chosen = parser.parse_args()
    plan = Plan(runs=chosen.runs)
    with KafkaCluster() as kafka:
        bench = Bench(kafka, Topics(kafka, plan.records), plan)
        for name in chosen.conditions or CONDITIONS:
            comparison = CONDITIONS[name](bench, chosen.clients)
            print(as_text(LatencySection(name, name, "", (comparison,))), flush=True)


if __name__ == "__main__":
    main()
