"""Rounds of faults under queries that live through all of them, with a check after each."""

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.admin import admin_client
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from tests.servers.proxied import MECHANISM, ProxiedCluster
from tests.slowness import bound_s

from ..continuous_driver import THREADS, ContinuousDriver, DriverSetup
from ..driver import Driver, QueryPlan
from ..ledger import REPLICATED, SOURCE, Ledger
from ..losses import LossLog
from ..numbers import RecordShape, SoakError
from ..rounds import Round, Rounds, temporary_directory
from ..tracked_function import PACES, Pace
from .arena import Arena
from .broker_faults import NEAR_REPLICA, THREE_BROKERS
from .checkpoints import Checkpoints
from .cluster_faults import MAX_PARTITIONS, machine_offers
from .driver_queries import DriverQueries
from .fault import Fault
from .queries import BatchQuery, HostileQuery, LagQuery, MicroBatchQuery, committed
from .registry import FAULTS, fitting
from .resources import Resources
from .topic_faults import OWN_THREADS, TOLERANCE

HOSTILE_QUERIES: Final = tuple(
    QueryPlan(client, guarantee, login)
    for login in ("", MECHANISM)
    for client, guarantee in (
        ("kafka-python", "exactly-once"),
        ("kafka-python", "at-least-once"),
        ("confluent", "at-least-once"),
    )
)
CONTINUOUS_HOSTILE_QUERIES: Final = (
    QueryPlan("kafka-python", "exactly-once", MECHANISM),
    QueryPlan("kafka-python", "at-least-once"),
    QueryPlan("confluent", "at-least-once"),
    QueryPlan("confluent", "at-least-once", MECHANISM),
)
SPARK: Final = "spark"
CONTINUOUS: Final = "continuous"
PARTITIONS: Final = 4
MIN_BROKERS: Final = 3

_ALWAYS_WRONG: Final = frozenset(
    {"KAFKA_DATA_LOSS", "KAFKA_TOPIC_RECREATED", "KAFKA_TRANSACTION_LOST"}
)
"""Conditions that fail a round unless its fault allows them."""

_SLACK_S: Final = bound_s(2)
"""Of two cores that many processes share."""

_CLOSED_S: Final = bound_s(30)
"""How long the other sides of connections may take to see that their clients are closed."""

_ADMIN_S: Final = bound_s(30)
_LOOK_S: Final = 0.5
_AGAIN_S: Final = 0.05

_POOLED_CONNECTIONS: Final = 10
"""Connections that botocore and urllib3 pool for a host, by thread with a file system of fsspec."""

_PIPES: Final = "file pipe:"
"""Both ends of pipes."""

_EXECUTOR_THREADS: Final = min(32, (os.cpu_count() or 1) + 4)
"""The most threads that fsspec's event loop has to resolve names (``ThreadPoolExecutor``)."""


@dataclass(frozen=True, slots=True)
class HostileSettings:
    """How hard the rounds are. All times are in seconds."""

    timeout_s: float = 10.0
    """The time-out of each call of the queries."""

    max_fault_s: float = 25.0
    max_faults: int = 2
    rate: int = 400
    backlog: int = 20_000
    """How many numbers are written at once before the faults strike, in each round.

    The functions of continuous queries are slow from then on until the faults are healed.
    """

    rounds_per_count: int = 1
    """Threads, sockets and files are counted after the first of so many rounds.

    The queries close their clients for it, and open them again.
    """

    event_s: float = 180.0
    """How long an event is waited for; the first flow waits for kernels, too."""

    queries: str = THREADS
    """Micro-batches in threads of this process, or in ``SPARK``, or ``CONTINUOUS`` queries.

    The latter two have processes of their own.
    """


class HostileSoak(Rounds):
    """Queries on a proxied cluster, and one round of faults after another."""

    def __init__(
        self,
        proxied: ProxiedCluster,
        plans: Sequence[QueryPlan] = HOSTILE_QUERIES,
        seed: int = 0,
        say: Callable[[str], None] = lambda _: None,
        faults: Sequence[Fault] = FAULTS,
        settings: HostileSettings | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        super().__init__(seed, say)
        self._checkpoints = checkpoints or Checkpoints()
        self._proxied = proxied
        self._plans = plans
        self._settings = settings or HostileSettings()
        self._wanted = faults
        self._first: Resources | None = None
        """The resources after the first round."""
        self._to_count = 0

    def _open(self, closing: ExitStack) -> None:
        directory = temporary_directory(closing, "hostile-soak")
        self._pace = Pace(directory / "pace")
        reported = LossLog()
        closing.callback(reported.close)
        brokers = len(next(iter(self._proxied.proxies.values())))
        config = REPLICATED if brokers >= MIN_BROKERS else {}
        ledger = Ledger(
            self._proxied.cluster,
            self._plans,
            PARTITIONS,
            self._settings.rate,
            max_partitions=MAX_PARTITIONS if self._settings.queries == CONTINUOUS else None,
            config=config,
            losses=reported.losses,
        )
        closing.enter_context(ledger)
        queries = list(self._new_queries(ledger, directory))
        offers = frozenset({THREE_BROKERS} if brokers >= MIN_BROKERS else ())
        offers |= {
            THREADS: frozenset({OWN_THREADS, TOLERANCE}),
            SPARK: frozenset[str](),
            CONTINUOUS: frozenset({TOLERANCE}),
        }[self._settings.queries]
        offers |= frozenset({NEAR_REPLICA} if any(plan.in_own_rack for plan in self._plans) else ())
        offers |= machine_offers(self._proxied.cluster) | self._checkpoints.paths.keys()
        self._arena = Arena(
            self._proxied,
            ledger,
            queries,
            directory,
            timeout_s=self._settings.timeout_s,
            event_s=self._settings.event_s,
            offers=offers,
            checkpoints=self._checkpoints,
            note=self._note,
        )
        fit = fitting(self._wanted, offers)
        self._faults = random.Random(self._seed).sample(fit, len(fit))  # noqa: S311
        for query in queries:
            query.start()
            closing.callback(query.stop)

    def run_round(self, number: int) -> Round:
        chance = random.Random(f"{self._seed}/{number}")  # noqa: S311
        return self.run_faults(number, self._choose(number, chance), chance)

    def run_faults(self, number: int, faults: Sequence[Fault], chance: random.Random) -> Round:
        """Let faults happen under load; raise as ``run_round`` does."""
        self._arena.chance = chance
        names = [fault.name for fault in faults]
        return self._checked(number, partial(self._run, faults, chance), faults=names)

    def _run(self, faults: Sequence[Fault], chance: random.Random) -> None:
        self._arena.ledger.begin_round()
        for query in self._arena.queries:
            query.begin_round()
        is_to_count = self._to_count % self._settings.rounds_per_count == 0
        self._to_count += 1
        try:
            self._strike(faults, chance)
            self._check(faults)
            if is_to_count:
                self._check_resources()
        except Exception as error:
            # What queries found until now is not of the next round.
            raise SoakError("; ".join([repr(error), *self._take_wrong()])) from error

    def _choose(self, number: int, chance: random.Random) -> list[Fault]:
        """Return each fault in turn, some with others."""
        first = self._faults[number % len(self._faults)]
        others = [fault for fault in self._faults if fault.joins_others and fault is not first]
        most = min(self._settings.max_faults - 1, len(others)) if first.joins_others else 0
        return [first, *chance.sample(others, chance.randint(0, most))]

    def _strike(self, faults: Iterable[Fault], chance: random.Random) -> None:
        arena, producer = self._arena, self._arena.ledger.producer
        producer.use(RecordShape.chosen(chance))
        with producer.writing():
            arena.await_flow()
            for query in arena.queries:
                # What a start or an old fault has cost is not of this round.
                query.begin_round()
            with ExitStack() as healing:
                healing.callback(self._pace.clear)
                self._pace.set(chance.choice(PACES))
                producer.write_backlog(self._settings.backlog)
                for fault in sorted(faults, key=lambda each: not each.begins_first):
                    healing.enter_context(fault.strike(arena))
                arena.run_for(chance.uniform(0.2, 1.0) * self._settings.max_fault_s)
            arena.note("healed")
            arena.await_flow()
            arena.note("all queries flow")

    def _check(self, faults: Sequence[Fault]) -> None:
        arena = self._arena
        event_s = self._settings.event_s
        arena.ledger.check(time.monotonic() + event_s, lambda: None, event_s)
        arena.note("all numbers are there")
        wrong = []
        if self._settings.queries == CONTINUOUS:
            wrong += list(self._out_of_order())
        else:
            self._check_groups()
        wrong += self._take_wrong()
        allowed = frozenset().union(*(fault.conditions for fault in faults))
        limit = 2 * self._settings.timeout_s + _SLACK_S
        for query in arena.queries:
            if found := (query.errors.keys() & _ALWAYS_WRONG) - allowed:
                wrong.append(f"{query.name}: {sorted(found)}: {query.last_error}")
            if (longest := query.waits.longest()).seconds > limit:
                wrong.append(f"{query.name}: {longest} is more than {limit:.1f} s")
        if wrong:
            raise SoakError("; ".join(wrong))

    def _take_wrong(self) -> list[str]:
        return [told for query in self._arena.queries for told in query.take_wrong()]

    def _out_of_order(self) -> Iterator[str]:
        """Report exactly-once queries that have not kept the order of a partition.

        Others may: a task that is replaced can write on beside its replacement.
        """
        for plan, reader in self._arena.ledger.readers.items():
            if plan.is_exactly_once and reader.out_of_order:
                yield f"{plan.name}: {reader.out_of_order} numbers out of order"

    def _check_groups(self) -> None:
        """Compare the committed offsets of each group with the query's checkpoint."""
        arena = self._arena

        def agree() -> bool:
            try:
                groups = committed_offsets(arena.cluster, [plan.group for plan in self._plans])
            except PysparkKafkaError:
                # A coordinator may have moved.
                return False
            return all(
                groups[plan.group] == committed(self._checkpoint(plan, arena.directory))
                for plan in self._plans
            )

        arena.await_event(agree, "offsets of all groups")

    def _check_resources(self) -> None:
        """Let the queries close their clients: no more is left than after the first round."""
        arena = self._arena
        for query in arena.queries:
            query.rest()
        try:
            for query in arena.queries:
                query.await_rest()
            self._round.facts["resources"] = self._await_first_resources().totals()
        finally:
            for query in arena.queries:
                query.go_on()
        arena.note("threads, sockets and files as after the first round")

    def _await_first_resources(self) -> Resources:
        """Wait until there is no more than after the first round, and return what there is."""
        if self._first is None:
            self._first = self._await_equal_counts()
        deadline, ceilings = time.monotonic() + _CLOSED_S, self._ceilings()
        while more := (now := self._count_resources()).beyond(self._first, ceilings):
            if time.monotonic() > deadline:
                # The next round answers for what it adds itself.
                self._first = now
                raise SoakError(f"more than after the first round: {more}")
            self._arena.run_for(_AGAIN_S)
        return now

    def _await_equal_counts(self) -> Resources:
        """Wait until what there is stays the same for a while, and return it."""
        counts = [self._count_resources()]

        def stays() -> bool:
            self._arena.run_for(_LOOK_S)
            counts.append(self._count_resources())
            return counts[-1] == counts[-2]

        self._arena.await_event(stays, "equal counts of threads, sockets and files", _CLOSED_S)
        return counts[-1]

    def _ceilings(self) -> dict[str, int]:
        """Return how many there may be of what comes and goes, even if the first round had fewer.

        Libraries have pools that grow when needed. The ledger's clients have a thread and a pipe
        for each broker, which end while the broker is missing in the cluster's metadata.
        """
        ports = [proxy.address.rpartition(":")[2] for proxy in self._checkpoints.proxies.values()]
        connections = _POOLED_CONNECTIONS * (len(self._arena.queries) + 1)
        sockets = [f"socket {way} {port}" for port in ports for way in ("to", "accepted at")]
        threads = dict.fromkeys(
            (f"thread rdk:broker{broker}" for broker in range(self._arena.brokers)),
            1 + len(self._plans),
        )
        first = self._first.counts if self._first else Counter[str]()
        back = (Counter(threads) - first).total()
        return {
            **threads,
            _PIPES: first[_PIPES] + 2 * back,
            "thread asyncio": _EXECUTOR_THREADS,
            "thread Thread (process_request_thread)": connections * len(ports),
            **dict.fromkeys(sockets, connections),
        }

    def _count_resources(self) -> Resources:
        """Return what there is, without the connections of the ledger, which come and go.

        Connections of other processes go through proxies of this one, and are kept by pools.
        """
        if self._settings.queries != THREADS:
            return Resources.count().without_sockets()
        servers = self._arena.cluster.bootstrap_servers.split(",")
        return Resources.count().without_peers(int(each.rpartition(":")[2]) for each in servers)

    def _come_to(self) -> dict[str, Any]:
        queries = self._arena.queries
        return {
            **self._arena.ledger.facts(),
            "longest": {query.name: str(query.waits.longest()) for query in queries},
            "errors": {query.name: dict(query.errors) for query in queries if query.errors},
            "ends": [
                query.last_error
                for query in queries
                if query.errors and isinstance(query, DriverQueries)
            ],
        }

    def _new_queries(self, ledger: Ledger, directory: Path) -> Iterable[HostileQuery]:
        if self._settings.queries != THREADS:
            yield self._new_driver(ledger, directory)
        readers = set()
        for plan in self._plans:
            options = self._options(plan)
            if self._settings.queries == THREADS:
                yield MicroBatchQuery(plan, options, self._checkpoint(plan, directory), ledger)
            # Readers have no guarantee.
            if (key := (plan.client, plan.login)) not in readers:
                readers.add(key)
                chance = random.Random(f"{self._seed}/{key}")  # noqa: S311
                yield BatchQuery(plan, options, ledger, chance)
                yield LagQuery(plan, options, ledger, chance)

    def _new_driver(self, ledger: Ledger, directory: Path) -> DriverQueries:
        if self._settings.queries == SPARK:
            spark = Driver(directory, self._plans, SOURCE, self._options, uses_groups=True)
            return DriverQueries(SPARK, spark, spark.start, ledger)
        driver = ContinuousDriver(directory)
        ledger.losses = driver.losses
        setup, checkpoints = DriverSetup(THREADS), directory / "checkpoints"
        start = partial(driver.start, self._plans, setup, SOURCE, self._options, checkpoints)
        return DriverQueries(CONTINUOUS, driver, start, ledger)

    def _checkpoint(self, plan: QueryPlan, directory: Path) -> StoragePath:
        if self._settings.queries == SPARK:
            return StoragePath(str(plan.checkpoint(directory)))
        return self._checkpoints.path_of(self._plans.index(plan), plan.name, directory)

    def _options(self, plan: QueryPlan) -> dict[str, str]:
        return self._proxied.options(plan.login) | time_outs(self._settings.timeout_s)


def committed_offsets(cluster: KafkaCluster, groups: Sequence[str]) -> dict[str, PartitionOffsets]:
    """Return the committed offsets of groups, by the plain listeners."""
    with admin_client(cluster.bootstrap_servers, "offsets of groups", _ADMIN_S) as admin:
        found = admin.list_group_offsets(list(groups))
    return {
        group: PartitionOffsets(
            (TopicPartition(one.topic, one.partition), value.offset)
            for one, value in offsets.items()
            if value.offset >= 0
        )
        for group, offsets in found.items()
    }


def time_outs(seconds: float) -> dict[str, str]:
    """Return options of sources and sinks with one time-out for every call.

    A source has ``kafkaConsumer.pollTimeoutMs`` as well, which sinks refuse.
    """
    milliseconds = str(int(seconds * 1_000))
    return {
        "kafka.default.api.timeout.ms": milliseconds,
        "kafka.delivery.timeout.ms": milliseconds,
        "kafka.request.timeout.ms": milliseconds,
        "kafka.reconnect.backoff.max.ms": "500",
    }
