"""What all processes of a schedule share, and what a story is told from."""

from collections import Counter
from collections.abc import Callable
from typing import Final

from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.options.client_settings import ProducerSettings
from pyspark_kafka.domain.options.sink import SinkOptions
from pyspark_kafka.domain.options.sink_table import DeliveryGuarantee
from pyspark_kafka.domain.writing.transaction import Transaction

from ..engine.decisions import Decisions
from ..engine.outcome import Told
from ..engine.scheduler import Process, Scheduler
from .checkpoint import Checkpoint
from .faults import Fault, SinkSettings
from .kafka import TOPIC, Kafka

PREFIX: Final = "sink"
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
        self.records = settings.records
        self.options = _options(settings)
        self.told: list[Told] = []
        self.snapshots: list[Checkpoint] = []
        self.interference: set[Fault] = set()
        """What people did of which not everything is promised."""
        self.planned_ms: dict[str, int] = {}
        """When a batch of an application was planned."""
        self.places: dict[str, str] = {}
        """The place of an application's checkpoint, by the application's number."""
        self.given: dict[str, tuple[Transaction, ...]] = {}
        """The transactions that a call of ``commit`` got."""
        self.written_by_people: set[bytes] = set()
        self.known: Counter[str] = Counter()
        """What was found and is known."""
        self.people: Process | None = None
        self.check_entry: Callable[[int, bytes, Checkpoint, str], None] = lambda *_: None
        self.check_error: Callable[[Exception, Checkpoint, str], None] = lambda *_: None

    def tell(self, who: str, call: str, subject: object, outcome: object) -> None:
        self.told.append((self.scheduler.now_ms, who, call, subject, outcome))

    def notify(self) -> None:
        """Let people see that something ended."""
        if self.people is not None:
            self.scheduler.wake(self.people)

    def is_visible(self, value: bytes) -> bool:
        return self.kafka.visible()[value] > 0

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
            return fired.between(1, 600_000)
        return self.decisions.between("Kafka", 1, 10_000)


def _options(settings: SinkSettings) -> SinkOptions:
    checkpoint = StoragePath("memory://checkpoint")
    path = "memory://checkpoint/sinks/pyspark_kafka"
    return SinkOptions(
        client="memory",
        topic=TOPIC,
        guarantee=DeliveryGuarantee.EXACTLY_ONCE,
        metadata_path=StoragePath(path if settings.is_log_in_checkpoint else "memory://elsewhere"),
        checkpoint=checkpoint,
        transactional_id_prefix=PREFIX,
        producer=ProducerSettings(transaction_timeout_ms=settings.timeout_ms),
        kafka=(("bootstrap.servers", "memory"),),
    )
