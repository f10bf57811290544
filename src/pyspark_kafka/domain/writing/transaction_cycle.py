"""One transaction after the other, each with what was written while the one before ended.

The rules of Java's ``TransactionManager`` for a consume-transform-produce loop with one input
partition. The caller performs what ``next_requests`` returns and reports the results. Nothing here
reads a clock, waits or does I/O.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, final

from ..errors import BrokerUnreachableError, KafkaRequestError
from .batch import AddPartitionsToTxn, R
from .errors import ProducerFencedError, TransactionLostError
from .transaction import FORGOTTEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..topic_partition import TopicPartition
    from .transaction import Transaction

MIN_PAUSE_S: Final = 0.001
MAX_PAUSE_S: Final = 0.005
"""The pauses while the last transaction ends: its markers are written in about that time."""


class TransactionError(Enum):
    """Classes of Kafka's errors; each client maps its own to them."""

    CONCURRENT_TRANSACTIONS = auto()
    """The last transaction has not ended completely."""

    RETRIABLE = auto()
    DISCONNECTED = auto()
    """Retriable, and the cluster counts as unreachable if it lasts."""

    FENCED = auto()
    FORGOTTEN = auto()
    """The transactional id has expired."""

    FATAL = auto()


@final
@dataclass(frozen=True, slots=True)
class AddOffsetsToTxn:
    """Announce the group whose offsets a transaction is about to commit."""

    transaction: Transaction


@final
@dataclass(frozen=True, slots=True)
class WriteRecords(Generic[R]):
    """Write records to partitions that are in the transaction; done once they are acknowledged."""

    batches: tuple[tuple[TopicPartition, R], ...]


@final
@dataclass(frozen=True, slots=True)
class TxnOffsetCommit:
    """Commit the next offset of the input as a part of the transaction."""

    transaction: Transaction
    next_offset: int


@final
@dataclass(frozen=True, slots=True)
class EndTxn:
    """Commit the transaction."""

    transaction: Transaction


TransactionRequest: TypeAlias = (
    AddPartitionsToTxn | AddOffsetsToTxn | WriteRecords[R] | TxnOffsetCommit | EndTxn
)


@final
class TransactionCycle(Generic[R]):
    """Decides what is sent when; must not be used after it has raised.

    Requests are repeated: each of them does nothing if it was handled before. Times are monotonic,
    in seconds.
    """

    def __init__(
        self,
        transaction: Transaction,
        retry_backoff_s: float,
        timeout_s: float,
        bootstrap_servers: str,
    ) -> None:
        """Begin without a transaction; ``timeout_s`` is for how long there may be only errors."""
        self._transaction = transaction
        self._retry_backoff_s = retry_backoff_s
        self._timeout_s = timeout_s
        self._bootstrap_servers = bootstrap_servers
        self._waiting: list[tuple[TopicPartition, R]] = []
        self._waiting_offset: int | None = None
        self._waiting_bytes = 0
        self._steps: list[list[TransactionRequest[R]]] = []
        self._offset = -1
        self._unsent: dict[TransactionRequest[R], float] = {}
        self._in_flight: set[TransactionRequest[R]] = set()
        self._failing_since: float | None = None
        self._pause_s = MIN_PAUSE_S
        self._committed: int | None = None

    def append(self, batches: Sequence[tuple[TopicPartition, R]], next_offset: int) -> None:
        """Take the output of the records before an offset of the input."""
        self._waiting += batches
        self._waiting_offset = next_offset
        self._waiting_bytes += sum(records.payload_bytes for _, records in batches)

    @property
    def waiting_bytes(self) -> int:
        """The size of what waits for the next transaction."""
        return self._waiting_bytes

    @property
    def is_open(self) -> bool:
        """Whether there is a transaction that has not ended."""
        return bool(self._unsent or self._in_flight)

    @property
    def is_quiet(self) -> bool:
        """Whether there is a transaction, and no request of it may still be on its way.

        One that was sent over a connection that is lost may come later.
        """
        return self.is_open and not self._in_flight and self._failing_since is None

    @property
    def is_settled(self) -> bool:
        """Whether all is committed."""
        return self._waiting_offset is None and not self.is_open

    def take_committed(self) -> int | None:
        """Return the offset that was committed since the last call, if any."""
        committed, self._committed = self._committed, None
        return committed

    # The next requests

    def next_requests(self, now: float) -> Sequence[TransactionRequest[R]]:
        """Return what to send now; all of them at once."""
        if not self.is_open and self._waiting_offset is not None:
            self._begin(self._waiting_offset, now)
        due = [request for request, retry_at in self._unsent.items() if retry_at <= now]
        for request in due:
            del self._unsent[request]
            self._in_flight.add(request)
        return due

    def seconds_to_retry(self, now: float) -> float:
        """Return when ``next_requests`` has more; infinity if it waits for responses."""
        return max(0.0, min(self._unsent.values(), default=math.inf) - now)

    def _begin(self, next_offset: int, now: float) -> None:
        transaction, batches = self._transaction, tuple(self._waiting)
        self._waiting, self._waiting_offset, self._waiting_bytes = [], None, 0
        self._offset = next_offset
        first: list[TransactionRequest[R]] = [AddOffsetsToTxn(transaction)]
        self._steps = [[TxnOffsetCommit(transaction, next_offset)], [EndTxn(transaction)]]
        if batches:
            partitions = frozenset(partition for partition, _ in batches)
            first.insert(0, AddPartitionsToTxn(transaction, partitions))
            # Not together with the offsets: a broker verifies that both belong to the transaction
            # (KIP-890), and of two verifications for one producer at a time the first one fails
            # (AddPartitionsToTxnManager.addTxnData), to be repeated after the back-off of 100 ms.
            self._steps.insert(0, [WriteRecords(batches)])
        self._unsent = dict.fromkeys(first, now)

    # Results of requests

    def succeeded(self, request: TransactionRequest[R], now: float) -> None:
        """Take a response without an error."""
        self._in_flight.discard(request)
        self._failing_since, self._pause_s = None, MIN_PAUSE_S
        if self.is_open:
            return
        if self._steps:
            self._unsent = dict.fromkeys(self._steps.pop(0), now)
        else:
            self._committed = self._offset

    def failed(
        self, request: TransactionRequest[R], error: TransactionError, reason: str, now: float
    ) -> None:
        """Take an error: the request is repeated after a pause, if that may help.

        :raises ProducerFencedError: if another producer has the transactional id now.
        :raises TransactionLostError: if brokers no longer know the transactional id.
        :raises KafkaRequestError: if the coordinator refuses the request.
        :raises BrokerUnreachableError: if brokers were not to be reached for too long.
        """
        if error is TransactionError.FENCED:
            raise ProducerFencedError(self._transaction.transactional_id)
        if error is TransactionError.FORGOTTEN:
            raise forgotten_error(self._transaction.transactional_id)
        if self._failing_since is None:
            self._failing_since = now
        failing_s = now - self._failing_since
        if error is TransactionError.FATAL or failing_s > self._timeout_s:
            if error is TransactionError.DISCONNECTED:
                raise BrokerUnreachableError(self._bootstrap_servers, failing_s, reason)
            raise KafkaRequestError(f"a request of type {type(request).__name__}", reason)
        pause_s = self._retry_backoff_s
        if error is TransactionError.CONCURRENT_TRANSACTIONS:
            pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, MAX_PAUSE_S)
        self._in_flight.discard(request)
        self._unsent[request] = now + pause_s


def forgotten_error(transactional_id: str) -> TransactionLostError:
    """Return the error of a task whose input had no records for so long that its id expired.

    The group's offset shows what was committed, and the next task begins there.
    """
    return TransactionLostError(
        [transactional_id],
        FORGOTTEN,
        "The task starts again where the group's offsets are: nothing is lost. If that happens "
        "often, raise 'transactional.id.expiration.ms' of the brokers.",
        may_be_committed=True,
    )
