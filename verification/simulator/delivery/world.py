"""The state that all processes of a schedule share, and the events for its story."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..engine.decisions import Decisions
from ..engine.scheduler import Scheduler
from .kafka import Kafka

if TYPE_CHECKING:
    from ..engine.outcome import Told
    from ..engine.scheduler import Action
    from .faults import DeliverySettings


class World:
    """A schedule: its settings, its time, its cluster, and what has happened."""

    def __init__(self, settings: DeliverySettings) -> None:
        self.settings = settings
        self.decisions = Decisions(settings)
        self.scheduler = Scheduler()
        self.told: list[Told] = []
        self.kafka = Kafka(self)
        self.producers = 0
        self._arrivals = Counter[tuple[str, int]]()
        """When the last request or answer of a partition arrives."""

    def tell(self, who: str, call: str, subject: object, outcome: object) -> None:
        self.told.append((self.scheduler.now_ms, who, call, subject, outcome))

    def send(self, what: str, partition: int, delay_ms: int, arrive: Action) -> None:
        """Let a request or an answer arrive, after those before it on the same connection."""
        now_ms, key = self.scheduler.now_ms, (what, partition)
        self._arrivals[key] = max(self._arrivals[key], now_ms + delay_ms)
        self.scheduler.at(self._arrivals[key] - now_ms, arrive)
