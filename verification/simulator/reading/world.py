"""The state that all parts of a schedule share, and the events for its story."""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from pyspark_kafka.adapters import call_deadline
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.topic_partition import TopicPartition

from ..engine.decisions import Decisions
from ..engine.outcome import Told
from ..engine.scheduler import EPOCH_MS, Process, Scheduler
from .broker import Broker
from .cluster import Cluster
from .faults import Fault, ReadingSettings
from .network import Network
from .patches import Environment

BOOTSTRAP: Final = "kafka"
DEAD_HOST: Final = "10.0.99.99"
_MAX_CALL_S: Final = 30.0
_LOGIN: Final = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="ann" password="word";',
}
_OTHER_BYTES: Final = 2_000
"""The most bytes of a response that are no records, and of one that is no fetch."""


class World:
    """A schedule: its settings, its time, its cluster, and what has happened."""

    def __init__(self, settings: ReadingSettings) -> None:
        self.settings = settings
        self.decisions = Decisions(settings)
        self.scheduler = Scheduler()
        self.network = Network(self.scheduler)
        self.environment = Environment(self.network, rotates_names=settings.rotates_names)
        self.cluster = Cluster(settings, self.decisions, self.scheduler)
        self.told: list[Told] = []
        self.known: Counter[str] = Counter()
        self.brokers = [
            Broker(self.cluster, each, self.network, self.decisions, self.tell)
            for each in self.cluster.members
        ]
        self.options = _options(settings)
        self.calm_since_ms: int | None = None
        """When faults ended."""

        self.is_peaceful = False
        """Whether nothing has been wrong for so long that nothing may fail."""

        self.on_complete: Callable[[], bool] = lambda: True
        """Called when everything is read; returns whether that is all."""

        self.has_bootstrap = True
        """Whether the name of the bootstrap servers has addresses."""

        self.dead_place: int | None = None
        """Where a dead host is among the addresses of each name."""

        self.ends_told: dict[TopicPartition, list[tuple[int, int]]] = {}
        """The first offsets and the ends of logs that were true when the client asked."""

        self.longest_ms = 0
        """How long a call of the client took at most."""

        self.is_done = False
        self.reader: Process | None = None
        self.died_error: type[BaseException] = BaseException
        self._dies_at_ms: int | None = None
        self.name_brokers()
        self.environment.on_wait = self.die_if_due
        self.network.client.memory.limit_of = self._max_memory

    def tell(self, who: str, call: str, subject: object, outcome: object) -> None:
        self.told.append((self.scheduler.now_ms, who, call, subject, outcome))

    def name_brokers(self) -> None:
        """Let the names of the bootstrap servers and of brokers have the brokers' addresses."""
        members = self.cluster.members
        names = {BOOTSTRAP: [each.host for each in members]} if self.has_bootstrap else {}
        names |= {each.name: [each.host] for each in members if each.name}
        for addresses in names.values():
            if self.dead_place is not None:
                addresses.insert(self.dead_place, DEAD_HOST)
        self.network.names.update({BOOTSTRAP: [], **names})

    @property
    def now_ms(self) -> int:
        """The milliseconds since the schedule began."""
        return self.scheduler.now_ms - EPOCH_MS

    @property
    def is_overdue(self) -> bool:
        """Whether everything should have been read."""
        return self.calm_since_ms is not None and self.now_ms > self.calm_since_ms + self.bound_ms

    @property
    def bound_ms(self) -> int:
        """How long a reader may need to recover from faults.

        A request in flight is given up, a read fails and is tried again, the lease of a replica
        ends, and metadata are refreshed that could not be for a while.
        """
        settings = self.settings
        waits = 2 * settings.api_ms + 2 * settings.request_ms + settings.metadata_age_ms
        return waits + settings.poll_ms + 45_000

    def _max_memory(self) -> float:
        """Return how much memory responses may take: a fetch from each broker, and smaller ones.

        A response has a first batch whole, and others up to the limit (KIP-74).
        """
        settings = self.settings
        limit = settings.response_bytes + self.cluster.max_batch_bytes + _OTHER_BYTES
        responses = sum(min(each.max_response_bytes, limit) for each in self.brokers)
        return settings.brokers * settings.buffer_bytes + responses + _OTHER_BYTES

    def run(self) -> None:
        """Run until the reader has ended; what brokers still have to do does not matter."""
        reader = self.reader
        assert reader is not None
        self.scheduler.run(lambda: reader.is_done)

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes that must stay bounded."""
        response = max(each.max_response_bytes for each in self.brokers)
        return {
            "sockets": self.network.max_sockets,
            "bytes in a response": response,
            "bytes received and kept": self.network.client.memory.max_bytes,
            "refused connections in a second": self.network.client.most_refused,
            "ms in a poll": self.longest_ms,
        }

    def plan_death(self, name: str) -> None:
        """Decide whether, and when, the reader's process ends."""
        fired = self.decisions.has(name, Fault.READER_DIES, 0.7)
        self._dies_at_ms = self.now_ms + fired.between(1, 5_000) if fired else None

    def die_if_due(self) -> None:
        if self.is_peaceful:
            return
        if self._dies_at_ms is not None and self.now_ms >= self._dies_at_ms:
            self._dies_at_ms = None
            raise self.died_error

    def first(self, name: TopicPartition) -> int | None:
        """Return the first offset of a partition, ``None`` if there is no such partition."""
        partition = self.cluster.partition(name)
        return None if partition is None else partition.log.start

    def last(self, name: TopicPartition) -> int | None:
        """Return the offset after the last record that may be read."""
        partition = self.cluster.partition(name)
        if partition is None:
            return None
        log = partition.log
        return log.stable().offset if self.settings.is_committed else log.high_watermark

    def time_left_s(self) -> float:
        """Return how long the call of the client may still take."""
        calls: Any = call_deadline._CALLS
        return min(calls.deadline.remaining, _MAX_CALL_S)


_parsed: dict[str, SourceOptions] = {}


def _options(settings: ReadingSettings) -> SourceOptions:
    given = {
        "client": "kafka-python",
        "subscribe": "t0,t1",
        "kafka.bootstrap.servers": f"{BOOTSTRAP}:9092",
        "kafka.isolation.level": "read_committed" if settings.is_committed else "read_uncommitted",
        "kafka.metadata.max.age.ms": str(settings.metadata_age_ms),
        "kafka.request.timeout.ms": str(settings.request_ms),
        "kafka.default.api.timeout.ms": str(settings.api_ms),
        "kafka.socket.connection.setup.timeout.ms": str(settings.request_ms),
        "kafka.max.partition.fetch.bytes": str(settings.partition_bytes),
        "kafka.fetch.max.bytes": str(settings.response_bytes),
        "kafkaConsumer.pollTimeoutMs": str(settings.poll_ms),
        "failOnDataLoss": "true" if settings.seed % 2 else "false",
    }
    if settings.session_ms:
        given |= _LOGIN
    if settings.rack:
        given["kafka.client.rack"] = settings.rack
    key = repr(given)
    if key not in _parsed:
        if len(_parsed) > 500:
            _parsed.clear()
        _parsed[key] = parse_source_options(given, QueryKind.STREAM)
    return _parsed[key]
