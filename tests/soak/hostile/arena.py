"""What faults act on, and what they may wait for."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, final

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.admin import known_leaders

from ...servers.fault_proxy import FaultProxy, Rules
from ...servers.proxied import ProxiedCluster
from ..ledger import Ledger
from ..numbers import SoakError
from .checkpoints import Checkpoints
from .queries import HostileQuery

_READ_S: Final = 0.01


@final
class Arena:
    """A proxied cluster, the ledger, and queries that live through all rounds.

    Used by the one thread that runs the rounds. ``chance`` is the round's: a seed and the number of
    a round say what it returns. ``timeout_s`` is the time-out of each call of the queries, and
    ``event_s`` is how long an event is waited for.
    """

    def __init__(
        self,
        proxied: ProxiedCluster,
        ledger: Ledger,
        queries: Sequence[HostileQuery],
        directory: Path,
        *,
        timeout_s: float,
        event_s: float,
        offers: frozenset[str],
    ) -> None:
        self.proxied = proxied
        self.ledger = ledger
        self.queries = queries
        self.directory = directory
        """For files of faults; it is removed at the end."""
        self.timeout_s = timeout_s
        self.event_s = event_s
        self.offers = offers
        self.checkpoints = Checkpoints()
        """The storages of the queries."""
        self.chance: random.Random
        self.steps: list[str] = []
        self._began = time.monotonic()

    @property
    def cluster(self) -> KafkaCluster:
        """The brokers."""
        return self.proxied.cluster

    @property
    def brokers(self) -> int:
        """How many brokers there are; their ids begin with 0."""
        return len(next(iter(self.proxied.proxies.values())))

    def begin_round(self, chance: random.Random) -> None:
        """Take the random numbers of a round, and forget its predecessor."""
        self.chance = chance
        self.steps = []
        self._began = time.monotonic()

    def note(self, what: str) -> None:
        """Write down what happens, with the time."""
        self.steps.append(f"{time.monotonic() - self._began:.1f} s: {what}")

    # Brokers and networks

    def pid_of(self, broker: int) -> int:
        """Return the process of a running broker."""
        return self.cluster._process(broker).pid

    def leader_of(self, topic: str, partition: int) -> int:
        """Return the broker that leads a partition, -1 if none does."""
        return self.leaders_of(topic).get(partition, -1)

    def leaders_of(self, topic: str) -> dict[int, int]:
        """Return the leaders of a topic's partitions; none if there is no such topic.

        They are asked of a broker that runs.
        """
        return known_leaders(self.cluster._live_nodes()[0].port, topic) or {}

    def proxies_of(self, broker: int) -> list[FaultProxy]:
        """Return the proxies of all listeners of a broker."""
        return [of_listener[broker] for of_listener in self.proxied.proxies.values()]

    @contextmanager
    def ruled(self, proxies: Sequence[FaultProxy], rules: Rules) -> Iterator[None]:
        """Put rules in force in proxies; afterwards, those that were before."""
        before = [(proxy, proxy.rules) for proxy in proxies]
        for proxy in proxies:
            proxy.set(rules)
        try:
            yield
        finally:
            for proxy, rule in before:
                proxy.set(rule)

    # Waiting; outputs are read meanwhile

    def run_for(self, seconds: float) -> None:
        """Let the queries run for some seconds."""
        self._wait_for(lambda: False, seconds)

    def await_event(
        self, happened: Callable[[], bool], what: str, seconds: float | None = None
    ) -> None:
        """Wait until something has happened.

        :raises SoakError: if it does not in time.
        """
        if not self._wait_for(happened, seconds or self.event_s):
            raise SoakError(f"no {what} within {seconds or self.event_s:.0f} s")

    def await_flow(self) -> None:
        """Wait until each query has done all that it does at least once from now on.

        Sinks have written numbers that are new, in each partition; readers have read a range, or
        measured a lag. Only while numbers are written.

        :raises SoakError: if one has not in time.
        """
        marks = {query: query.mark() for query in self.queries}
        try:
            self.await_event(
                lambda: all(query.has_passed(mark) for query, mark in marks.items()), "flow"
            )
        except SoakError as error:
            late = [query.told() for query, mark in marks.items() if not query.has_passed(mark)]
            raise SoakError(f"{error}: {'; '.join(late)}") from None

    def _wait_for(self, happened: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not happened():
            if time.monotonic() > deadline:
                return False
            self.ledger.read(_READ_S)
        return True
