"""A sink's transactions, their ids, and a coordinator's description of them."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, final

_UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NUMBER: Final = "(?:0|[1-9][0-9]{0,9})"
_PART: Final = "[0-9a-f]{8}"

LANES: Final = 8
"""How many names the attempts of a partition have."""

SLOTS: Final = 16
"""How many transactional ids an attempt may choose from."""

FORGOTTEN: Final = (
    "the brokers have forgotten the transactional id, as they do when it was not used for "
    "'transactional.id.expiration.ms' (7 days), or this is another cluster"
)
"""The reason of Kafka's INVALID_PRODUCER_ID_MAPPING."""


@final
@dataclass(frozen=True, slots=True)
class Transaction:
    """An open transaction; a process that has all three values can write to it and end it.

    A later ``epoch`` of the same ``transactional_id`` fences it.
    """

    transactional_id: str
    producer_id: int
    epoch: int


class TransactionState(enum.Enum):
    """The states of a transactional id, as Kafka's ``TransactionState`` names them."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


_ENDING: Final = frozenset(
    {
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
        TransactionState.PREPARE_EPOCH_FENCE,
    }
)
_COMMITTED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT})
_OPEN: Final = frozenset({TransactionState.EMPTY, TransactionState.ONGOING})


@final
@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A coordinator's description of a transactional id (``DescribeTransactions``, KIP-664).

    ``started_ms`` is when its last transaction got its first partition, by the coordinator's clock
    in milliseconds since the epoch; -1 if its newest producer has begun none.
    """

    producer_id: int
    epoch: int
    state: TransactionState
    started_ms: int
    timeout_ms: int

    @property
    def is_open(self) -> bool:
        """Whether a transaction holds records, or is about to end."""
        return self.state is TransactionState.ONGOING or self.state in _ENDING


class TransactionEnd(enum.Enum):
    """How a transaction ended; the values complete a sentence about it."""

    COMMITTED = "was committed"
    ABORTED = "was aborted by a request: of another driver of this query, or of an operator"
    TIMED_OUT = "was open for longer than 'kafka.transaction.timeout.ms'"
    FENCED = (
        "was aborted when another producer took its transactional id: a late attempt or another "
        "driver of this query, or an operator who fenced it"
    )
    REPLACED = "had ended when another producer took its transactional id"
    FORGOTTEN = "is unknown to the brokers"


def end_of(
    transaction: Transaction, description: TransactionDescription | None
) -> TransactionEnd | None:
    """Return how a transaction ended, ``None`` while it is open.

    A coordinator raises the epoch by one when it aborts a transaction for its time-out, and by two
    when a new producer with the same id makes it do so (``prepareFenceProducerEpoch``). A new
    producer whose epoch is just the next one found the transaction ended.
    """
    if description is None:
        return TransactionEnd.FORGOTTEN
    state = description.state
    raised = description.epoch - transaction.epoch
    if description.producer_id != transaction.producer_id or raised not in (0, 1):
        return TransactionEnd.FENCED
    if raised:
        is_aborted = state not in _OPEN and state not in _COMMITTED
        return TransactionEnd.TIMED_OUT if is_aborted else TransactionEnd.REPLACED
    if state in _OPEN:
        return None
    return TransactionEnd.COMMITTED if state in _COMMITTED else TransactionEnd.ABORTED


def ms_left(
    descriptions: Iterable[TransactionDescription], now_ms: int, planned_ms: int | None
) -> int | None:
    """Return for how many milliseconds open transactions stay open; ``None`` without a limit.

    ``now_ms`` and ``planned_ms`` are by the driver's clock; none was begun before ``planned_ms``. A
    coordinator's clock may differ: no transaction is taken for older than the batch.
    """
    max_age_ms = math.inf if planned_ms is None else now_ms - planned_ms
    left_ms = (
        each.timeout_ms - max(0, min(now_ms - each.started_ms, max_age_ms))
        for each in descriptions
        if each.started_ms >= 0
    )
    return int(found) if (found := min(left_ms, default=None)) is not None else None


def is_free(description: TransactionDescription, used_until_ms: int) -> bool:
    """Return whether an attempt may take a transactional id.

    Not while a transaction is open, nor if one began after ``used_until_ms``: it may be of the same
    batch, and the driver must still find out how it ended.
    """
    return not description.is_open and description.started_ms <= used_until_ms


@final
@dataclass(frozen=True, slots=True)
class SinkTaskId:
    """One attempt of one task of a micro-batch.

    ``run_id`` is the id of one start of the query. ``attempt`` distinguishes the attempt from all
    others of the task in this run. It is Spark's task attempt id: the attempt number begins with 0
    again in each attempt of a stage.
    """

    query_id: str
    run_id: str
    batch_id: int
    partition: int
    attempt: int

    def transactional_id(self, prefix: str, log_id: str) -> str:
        """Return the beginning of the attempt's transactional id; the number of a slot follows.

        ``log_id`` is the ``short_digest`` of the place of the sink's log. A copy of a checkpoint
        has another one, so that neither query ends the other's transactions. Two runs share no id
        either: to begin a transaction fences whoever has its id, and a run that was suspended may
        do that at any time. The number of ids must not grow with batches: a coordinator keeps each
        for 7 days.
        """
        log = log_prefix(prefix, self.query_id, log_id)
        lane = self.attempt % LANES
        return f"{log}{short_digest(self.run_id)}-{self.partition}-{lane}"


def continuous_id(group_id: str, topic: str, partition: int) -> str:
    """Return the transactional id of an input partition of a continuous query."""
    return f"{group_id}-{topic}-{partition}"


def query_id_prefix(prefix: str, query_id: str) -> str:
    """Return the common prefix of a query's transactional ids, wherever its log is."""
    return f"{prefix}-{query_id}-"


def short_digest(text: str) -> str:
    """Return a part of transactional ids that stands for a longer text."""
    return sha256(text.encode()).hexdigest()[:8]


def log_prefix(prefix: str, query_id: str, log_id: str) -> str:
    """Return the common prefix of the transactional ids of a query that uses a sink's log."""
    return f"{query_id_prefix(prefix, query_id)}{log_id}-"


def run_prefix(transactional_id: str) -> str:
    """Return the common prefix of the transactional ids of the same run."""
    return f"{transactional_id.rsplit('-', 3)[0]}-"


def is_id_of_query(transactional_id: str, prefix: str | None, query_id: str | None) -> bool:
    """Return whether a sink makes such an id for a query, wherever its log is.

    ``None`` stands for any prefix, and for the id of any query, which Spark makes as a UUID.
    Earlier versions made ids without a log and a run, and at first without a slot.
    """
    parts = f"{_PART}-{_PART}-{_NUMBER}-{_NUMBER}-{_NUMBER}"
    return _has_form(transactional_id, prefix, query_id, f"(?:{parts}|{_EARLIER_PARTS})")


def is_id_of_earlier_version(transactional_id: str, prefix: str, query_id: str) -> bool:
    """Return whether an earlier version made an id for a query, which names no log and no run."""
    return _has_form(transactional_id, prefix, query_id, _EARLIER_PARTS)


_EARLIER_PARTS: Final = f"{_NUMBER}-{_NUMBER}(?:-{_NUMBER})?"


def _has_form(transactional_id: str, prefix: str | None, query_id: str | None, parts: str) -> bool:
    first = ".+" if prefix is None else re.escape(prefix)
    query = _UUID if query_id is None else re.escape(query_id)
    return re.fullmatch(f"{first}-{query}-{parts}", transactional_id, re.DOTALL) is not None


@final
@dataclass(frozen=True, slots=True)
class DeliveryStats:
    """The number of acknowledged records, and the bytes of their keys, values and headers."""

    records: int = 0
    bytes: int = 0

    def __add__(self, other: DeliveryStats) -> DeliveryStats:
        return DeliveryStats(self.records + other.records, self.bytes + other.bytes)


NOTHING: Final = DeliveryStats()


@final
@dataclass(frozen=True, slots=True)
class WriteResult:
    """The output of a task; ``transaction`` is still open, and ``None`` without one."""

    delivered: DeliveryStats = NOTHING
    transaction: Transaction | None = None
