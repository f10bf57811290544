"""The brokers that sent librdkafka's messages: leaders or not, and their racks."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Final, final

from confluent_kafka import KafkaException

from ...domain.errors import PysparkKafkaError
from ...domain.reading.bytes_read import BytesRead
from ...ports.clock import Deadline
from ..call_deadline import within
from .cluster_describer import ConfluentClusterDescriber

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ...domain.options.source import SourceOptions
    from ...domain.topic_partition import TopicPartition
    from .handle import Handle

_LEADERS_S: Final = 10.0
"""How long the leaders of a topic are assumed to stay the same."""

_WAIT_S: Final = 1.0
"""How long a report waits for a broker's answer about racks and leaders."""


@final
class Sources:
    """Counts the bytes of rows, as Arrow holds them: librdkafka counts no bytes by broker."""

    def __init__(self, options: SourceOptions) -> None:
        """Request nothing yet. Without a rack, all brokers are leaders, and nothing is asked."""
        self._options = options
        self._sizes: Counter[tuple[TopicPartition, int]] = Counter()
        self._racks: Mapping[int, str] = {}
        self._leaders: dict[str, Mapping[int, int]] = {}
        self._leaders_until = Deadline.after(0)

    def add(self, partition: TopicPartition, broker: int, size: int) -> None:
        """Count bytes that a broker has sent."""
        self._sizes[partition, broker] += size

    def take(self, handle: Handle | None, *, has_rack: bool) -> BytesRead:
        """Return the bytes since the last call; ``handle`` is of the consumer that read them."""
        sizes, self._sizes = self._sizes, Counter()
        if not (sizes and has_rack and handle is not None):
            return BytesRead({"": sizes.total()} if sizes else {})
        self._learn_leaders(handle, {partition.topic for partition, _ in sizes})
        leaders: Counter[str] = Counter()
        replicas: Counter[str] = Counter()
        for (partition, broker), size in sizes.items():
            leader = self._leaders[partition.topic].get(partition.partition, broker)
            (leaders if leader == broker else replicas)[self._rack(broker)] += size
        return BytesRead(leaders, replicas)

    def _learn_leaders(self, handle: Handle, topics: Iterable[str]) -> None:
        if self._leaders_until.has_passed:
            self._leaders_until = Deadline.after(_LEADERS_S)
            self._leaders = {}
        answer = Deadline.after(_WAIT_S)
        for topic in set(topics) - self._leaders.keys():
            try:
                self._leaders[topic] = handle.topic_metadata(topic, answer.remaining).led
            except KafkaException:
                self._leaders[topic] = {}

    def _rack(self, broker: int) -> str:
        if broker not in self._racks:
            self._racks = {broker: "", **self._described()}
        return self._racks[broker]

    def _described(self) -> dict[int, str]:
        describer = ConfluentClusterDescriber(self._options)
        try:
            with within(_WAIT_S), closing(describer):
                return {each.broker_id: each.rack for each in describer.brokers()}
        except PysparkKafkaError:
            return {}
