"""The state that all processes of a schedule share, and the events for its story."""

from __future__ import annotations

from collections import Counter
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.options.client_settings import ProducerSettings
from pyspark_kafka.domain.options.sink import SinkOptions
from pyspark_kafka.domain.options.sink_table import DeliveryGuarantee
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.transaction import Transaction

from ..engine.decisions import Decisions
from ..engine.outcome import Told
from ..engine.scheduler import Process, Scheduler
from .checkpoint import Checkpoint, part
from .faults import Fault, SinkSettings
from .kafka import TOPIC, Kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .application import Application

PREFIX: Final = "sink"
LATEST_MS: Final = 600_000
"""By how much a time-out is noticed late at most."""
MAX_ENTRIES: Final = 6
"""How many entries the sink's log keeps here: a schedule has few batches."""


class World:
    """A schedule: its settings, its time, its cluster, and what has happened."""

    def __init__(self, settings: SinkSettings) -> None:
        self.settings = settings
        self.decisions = Decisions(settings)
        self.scheduler = Scheduler()
        self.kafka = Kafka(
            self.scheduler, settings.timeout_ms, settings.marker_ms, self._lateness_ms
        )
        self.input = self._input()
        """Where the partitions of the input end."""
        self.added_ms: dict[TopicPartition, int] = {}
        """When a partition was added."""
        self.options = cache(partial(_options, settings))
        """The sink's options, by its ``transactionalIdPrefix``."""
        self.told: list[Told] = []
        self.snapshots: list[Checkpoint] = []
        self.interference: set[Fault] = set()
        """Mistakes of people, after which not everything is promised."""
        self.planned_ms: dict[str, int] = {}
        """When a batch of an application was planned."""
        self.applications: dict[str, Application] = {}
        """By their numbers."""
        self.places: dict[str, str] = {}
        """The place of an application's checkpoint, by the application's number."""
        self.given: dict[str, tuple[Transaction, ...]] = {}
        """The transactions that a call of ``commit`` got."""
        self.written_by_people: set[bytes] = set()
        self.least: Counter[bytes] = Counter()
        """By how much more than once an output has to be visible, since offsets were rewritten."""
        self.most: Counter[bytes] = Counter()
        """By how much more than once it may be."""
        self.stopped_ms: dict[str, int] = {}
        """When ``stop`` of a continuous query has returned, by the application's number."""
        self.taken: dict[str, int] = {}
        """The batch that a continuous query takes over, by the application's number."""
        self.late_entries: set[tuple[str, int]] = set()
        """The logs and the numbers of entries that came after their writers had given up."""
        self.looked_ms: dict[str, int] = {}
        """When a process has read the offsets of a group."""
        self.known: Counter[str] = Counter()
        """Known limits that the schedule came to, counted."""
        self.people: Process | None = None
        self.check_entry: Callable[[int, bytes, Checkpoint, str], None] = lambda *_: None
        self.check_stop: Callable[[Sequence[str]], None] = lambda *_: None
        self.check_error: Callable[[Exception, Checkpoint, str], None] = lambda *_: None

    def tell(self, who: str, call: str, subject: object, outcome: object) -> None:
        self.told.append((self.scheduler.now_ms, who, call, subject, outcome))

    def notify(self) -> None:
        """Let people see that something ended."""
        if self.people is not None:
            self.scheduler.wake(self.people)

    def is_visible(self, value: bytes) -> bool:
        return self.kafka.visible[value] > 0

    def add_records(self, partition: TopicPartition, records: int) -> None:
        if partition not in self.input:
            self.added_ms[partition] = self.scheduler.now_ms
        self.input[partition] = self.input.get(partition, 0) + records

    def _input(self) -> dict[TopicPartition, int]:
        most, between = self.settings.records, self.decisions.between
        return {part(each): between("input", 1, most) for each in range(self.settings.partitions)}

    def remember(self, checkpoint: Checkpoint) -> None:
        if Fault.RESTORED in self.settings.kinds:
            self.snapshots.append(checkpoint.copy(checkpoint.tag))

    def work_ms(self, name: str) -> int:
        """Return how long a task computes until its next write."""
        worked = self.decisions.between(name, 1, self.settings.work_ms)
        return min(worked, 50) if self.decisions.is_quiet else worked

    def _lateness_ms(self) -> int:
        """Return by how much a time-out is noticed late: coordinators look every 10 s."""
        if fired := self.decisions.has("Kafka", Fault.LATE_TIMEOUT, 0.5):
            return fired.between(1, LATEST_MS)
        return self.decisions.between("Kafka", 1, 10_000)


def _options(settings: SinkSettings, prefix: str) -> SinkOptions:
    checkpoint = StoragePath("memory://checkpoint")
    path = "memory://checkpoint/sinks/pyspark_kafka"
    return SinkOptions(
        client="memory",
        topic=TOPIC,
        guarantee=DeliveryGuarantee.EXACTLY_ONCE,
        metadata_path=StoragePath(path if settings.is_log_in_checkpoint else "memory://elsewhere"),
        checkpoint=checkpoint,
        transactional_id_prefix=prefix,
        producer=ProducerSettings(transaction_timeout_ms=settings.timeout_ms),
        kafka=(("bootstrap.servers", "memory"),),
    )
