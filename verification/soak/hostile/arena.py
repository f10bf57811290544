"""The targets of faults, and the events that they may wait for."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.admin import known_leaders
from tests.servers.fault_proxy import FaultProxy, Rules
from tests.servers.proxied import ProxiedCluster

from ..ledger import SOURCE, Ledger
from ..numbers import SoakError
from .checkpoints import Checkpoints
from .queries import HostileQuery


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
        checkpoints: Checkpoints,
        note: Callable[[str], None],
    ) -> None:
        self.proxied = proxied
        self.note = note
        self.ledger = ledger
        self.queries = queries
        self.directory = directory
        """For files of faults; it is removed at the end."""
        self.timeout_s = timeout_s
        self.event_s = event_s
        self.offers = offers
        self.checkpoints = checkpoints
        """The storages of the queries."""
        self.chance: random.Random
        """That of the round."""

    @property
    def cluster(self) -> KafkaCluster:
        return self.proxied.cluster

    @property
    def topics(self) -> list[str]:
        """The topic of numbers, and those of the outputs."""
        return [SOURCE, *(plan.name for plan in self.ledger.readers)]

    @property
    def brokers(self) -> int:
        """How many brokers there are; their ids begin with 0."""
        return len(next(iter(self.proxied.proxies.values())))

    # Brokers and networks

    def pid_of(self, broker: int) -> int:
        return self.cluster._process(broker).pid

    def port_of(self, broker: int) -> int:
        """Return the port of its plain listener."""
        return self.cluster._nodes[broker].port

    def leader_of(self, topic: str, partition: int) -> int:
        """Return the broker that leads a partition, -1 if none does."""
        return self.leaders_of(topic).get(partition, -1)

    def leaders_of(self, topic: str) -> dict[int, int]:
        """Return the leaders of a topic's partitions by a running broker, empty without one."""
        return known_leaders(self.cluster._live_nodes()[0].port, topic) or {}

    def proxies_of(self, broker: int) -> list[FaultProxy]:
        return [of_listener[broker] for of_listener in self.proxied.proxies.values()]

    @contextmanager
    def ruled(self, brokers: Iterable[int], rules: Rules) -> Iterator[None]:
        """Put rules in force in the proxies of brokers; afterwards, those that were before."""
        proxies = [proxy for broker in brokers for proxy in self.proxies_of(broker)]
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
        self.ledger.wait_for(lambda: False, seconds)

    def await_event(
        self, happened: Callable[[], bool], what: str, seconds: float | None = None
    ) -> None:
        self.ledger.await_event(happened, what, seconds or self.event_s)

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
