"""Numbered record batches, and the requests to the caller that sends them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Generic, Protocol, Self, TypeAlias, TypeVar, final

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..topic_partition import TopicPartition
    from .transaction import Transaction


INT32_MAX: Final = 2**31 - 1
NO_PRODUCER_ID: Final = -1


@final
@dataclass(frozen=True, slots=True)
class ProducerIdAndEpoch:
    """A producer as brokers know it; without an id, its batches have no sequence numbers."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = -1
    is_transactional: bool = False


def next_sequence(base: int, count: int) -> int:
    """Return the sequence number ``count`` records behind another: after 2^31 - 1 comes 0."""
    return (base + count) % (INT32_MAX + 1)


class Records(Protocol):
    """The records of a batch, kept so that it can be encoded again."""

    @property
    def payload_bytes(self) -> int:
        """The bytes of all keys, values and headers."""

    def __len__(self) -> int: ...

    def first_record_bytes(self) -> int:
        """Return ``payload_bytes`` of the first record."""

    def halves(self) -> tuple[Self, Self]:
        """Return the first and the second half, for two records or more."""


R = TypeVar("R", bound=Records)


@final
@dataclass(slots=True, eq=False)
class ProducerBatch(Generic[R]):
    """Records with their sequence numbers, encoded or about to be."""

    partition: TopicPartition
    records: R
    sequence: int = 0
    encoded: bytes | memoryview = b""

    @property
    def next_sequence(self) -> int:
        """The sequence number of the record after the last."""
        return next_sequence(self.sequence, len(self.records))

    @property
    def memory(self) -> int:
        """The bytes that it holds, its share of the rows included."""
        return len(self.encoded) + self.records.payload_bytes

    def split(self) -> tuple[ProducerBatch[R], ProducerBatch[R]]:
        """Return two batches of half the records, with the same sequence numbers."""
        first, second = self.records.halves()
        one = ProducerBatch(self.partition, first, self.sequence)
        return one, ProducerBatch(self.partition, second, one.next_sequence)


@final
@dataclass(slots=True)
class PartitionQueue(Generic[R]):
    """Batches that wait, and batches that came back.

    While one has come back, none is sent until all in flight are answered or lost: the broker
    accepts them in the order of their sequence numbers only. Times are monotonic, in seconds.
    """

    producer: ProducerIdAndEpoch | None = None
    next_sequence: int = 0
    has_lost_sequence: bool = False
    waiting: deque[ProducerBatch[R]] = field(default_factory=deque)
    returned: list[ProducerBatch[R]] = field(default_factory=list)
    in_flight: int = 0
    node: int = -1
    """The broker to which batches are in flight."""

    is_leader_stale: bool = False
    retry_at: float = 0.0
    failing_since: float | None = None
    failures: int = 0
    max_batch_bytes: int | None = None
    """The limit found by splits, where the topic allows less than the settings."""

    def is_ready(self, now: float) -> bool:
        """Return whether the first waiting batch may be sent."""
        return not self.returned and now >= self.retry_at

    def append(self, batch: ProducerBatch[R]) -> None:
        """Add a batch behind the others, with the next sequence numbers."""
        batch.sequence = self.next_sequence
        self.next_sequence = batch.next_sequence
        self.waiting.append(batch)

    def pop(self, node: int) -> ProducerBatch[R]:
        """Return the first waiting batch, which is in flight to a broker from now on."""
        self.in_flight += 1
        self.node = node
        return self.waiting.popleft()

    def land(self, *returned: ProducerBatch[R]) -> None:
        """Count one batch less in flight; the batches that return are sent again."""
        self.in_flight -= 1
        self.returned += returned
        if not self.in_flight:
            # Responses come in the order of requests, and connections are lost all at once.
            self.waiting.extendleft(reversed(self.returned))
            self.returned.clear()

    def reset_sequences(self) -> None:
        """Number what waits from 0 on, for another producer id."""
        self.producer, self.has_lost_sequence, self.next_sequence = None, False, 0
        waiting, self.waiting = self.waiting, deque()
        for batch in waiting:
            self.append(batch)

    def fail(self, now: float, backoff_s: float, since: float) -> float:
        """Count a failure that began at ``since``; return for how long there were only failures."""
        if self.failing_since is None:
            self.failing_since = since
        self.failures += 1
        self.retry_at = now + backoff_s
        return now - self.failing_since


MESSAGE_TOO_LARGE: Final = (
    "The request included a message larger than the max message size the server will accept."
)
"""The text of Java's ``Errors.MESSAGE_TOO_LARGE``."""


class ProduceError(Enum):
    """Classes of Kafka's errors; each client maps its own to them."""

    DUPLICATE_SEQUENCE = auto()
    MESSAGE_TOO_LARGE = auto()
    INVALID_TIMESTAMP = auto()
    PRODUCER_FENCED = auto()

    INVALID_PRODUCER_EPOCH = auto()
    """A fence within a transaction, lost sequence numbers without one."""

    SEQUENCE_LOST = auto()
    """The broker does not know, or no longer knows, which sequence number comes next."""

    RETRIABLE = auto()
    DISCONNECTED = auto()
    """Retriable, and the cluster counts as unreachable if it lasts."""

    TOPIC_AUTHORIZATION_FAILED = auto()
    CLUSTER_AUTHORIZATION_FAILED = auto()
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = auto()

    FATAL = auto()


@final
@dataclass(frozen=True, slots=True)
class Failure:
    """An error, and the client's or the broker's text about it."""

    error: ProduceError
    reason: str


@final
@dataclass(frozen=True, slots=True)
class InitProducerId:
    """Ask a broker for a new producer id: ``producer_id_received``."""


@final
@dataclass(frozen=True, slots=True)
class Encode(Generic[R]):
    """Encode a batch for a producer: ``encoded``."""

    batch: ProducerBatch[R]
    producer: ProducerIdAndEpoch


@final
@dataclass(frozen=True, slots=True)
class FindLeaders:
    """Find and connect to the leaders of partitions: ``leader_not_found``, ``leaders_found``."""

    partitions: Collection[TopicPartition]
    stale: Collection[TopicPartition]
    """Those whose metadata are out of date."""


@final
@dataclass(frozen=True, slots=True)
class AddPartitionsToTxn:
    """Announce the partitions that a transaction is about to write to."""

    transaction: Transaction
    partitions: Collection[TopicPartition]


@final
@dataclass(frozen=True, slots=True)
class Produce(Generic[R]):
    """Send one batch for each of some partitions: ``sent``, ``disconnected``."""

    node: int
    batches: tuple[ProducerBatch[R], ...]
    transactional_id: str | None


@final
@dataclass(frozen=True, slots=True)
class Receive:
    """Wait for a response from each of some brokers: ``received``, ``disconnected``."""

    nodes: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Sleep:
    """Do nothing for a while."""

    seconds: float


Request: TypeAlias = (
    InitProducerId | Encode[R] | FindLeaders | AddPartitionsToTxn | Produce[R] | Receive | Sleep
)
