"""What the rules ask their caller to do, and the errors that it reports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, final

from .batch import ProducerBatch, R

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..topic_partition import TopicPartition
    from .batch import ProducerIdAndEpoch
    from .transaction import Transaction

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
    """The broker does not know, or not any more, which sequence number comes next."""

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
    """An error, and what the client or the broker says of it."""

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
