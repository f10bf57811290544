"""The state that all processes of a schedule share, and the events for its story."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..engine.decisions import Decisions
from ..engine.outcome import Told
from ..engine.scheduler import Process, Scheduler
from .faults import SourceSettings
from .kafka import Kafka
from .query import COMMITTED, GROUP_ID, Choice
from .topics import Topics

if TYPE_CHECKING:
    from .oracle import Oracle
    from .use_cases import SimulatedUseCases


class World:
    """A schedule: its settings, its time, its cluster, its query, and what has happened."""

    oracle: Oracle

    def __init__(
        self, settings: SourceSettings, kafka_of: Callable[[Scheduler], Kafka] = Kafka
    ) -> None:
        self.settings = settings
        self.decisions = Decisions(settings)
        self.scheduler = Scheduler()
        self.kafka = kafka_of(self.scheduler)
        self.told: list[Told] = []
        self.known: Counter[str] = Counter()
        self.stale = 0
        """How many answers came from brokers that lag."""
        self.use_cases: list[SimulatedUseCases] = []
        self.people: Process | None = None
        self.topics = Topics(self)
        self.query = Choice(settings, self.kafka).query()
        if self.query.start.every == COMMITTED:
            self.kafka.cluster.commit(GROUP_ID, dict(self.query.start.each))
        self.tell("options", "", self.query.options(is_batch=settings.is_batch))
        self.told.insert(0, self.told.pop())

    def tell(self, call: str, subject: object, outcome: object = None) -> None:
        current = self.scheduler.current
        self.told.append(
            (self.scheduler.now_ms, current.name if current else "", call, subject, outcome)
        )

    def notify(self) -> None:
        """Let people see that something ended."""
        if self.people is not None:
            self.scheduler.wake(self.people)

    @property
    def changes(self) -> tuple[int, int]:
        """A value that differs if anything about the topics may have changed."""
        return self.kafka.version, self.stale
