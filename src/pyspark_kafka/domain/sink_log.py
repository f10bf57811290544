"""The log of an exactly-once sink: the transactions of each micro-batch and their state.

Entries have consecutive numbers, and only the newest one counts. A batch goes from ``PREPARED``
(all records are written, none is visible) to ``COMMITTED``, or to ``DROPPED`` if all of its
transactions timed out; a dropped batch is written again.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import Any, Final, final

from .checkpoint_log import require_version
from .json_text import is_integer, read_json
from .option_values import INT16_MAX, INT64_MAX
from .transaction import Transaction

VERSION: Final = 1

_ENTRY_KEYS: Final = frozenset({"batchId", "state", "transactions"})
_TRANSACTION_KEYS: Final = frozenset({"transactionalId", "producerId", "producerEpoch"})


class BatchState(enum.Enum):
    """The state of a micro-batch."""

    PREPARED = "prepared"
    COMMITTED = "committed"
    DROPPED = "dropped"


@final
@dataclass(frozen=True, slots=True)
class SinkLogEntry:
    """A micro-batch, its state, and its transactions."""

    batch_id: int
    state: BatchState
    transactions: tuple[Transaction, ...] = ()

    @property
    def committed_through(self) -> int:
        """The last batch whose records are visible, -1 if there is none."""
        return self.batch_id if self.state is BatchState.COMMITTED else self.batch_id - 1

    def with_state(self, state: BatchState) -> SinkLogEntry:
        """Return the same batch in another state."""
        return SinkLogEntry(self.batch_id, state, self.transactions)

    def to_bytes(self) -> bytes:
        """Return the content of a file: a line with the version, and JSON."""
        content = {
            "batchId": self.batch_id,
            "state": self.state.value,
            "transactions": [
                {
                    "transactionalId": transaction.transactional_id,
                    "producerId": transaction.producer_id,
                    "producerEpoch": transaction.epoch,
                }
                for transaction in self.transactions
            ],
        }
        return f"v{VERSION}\n{json.dumps(content)}".encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> SinkLogEntry:
        """Parse the content of a file.

        :raises ValueError: if it is malformed or of a later version.
        """
        version, _, text = content.decode(errors="replace").partition("\n")
        require_version(version, VERSION)
        try:
            return _entry(read_json(text))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("Log file was malformed: it is not an entry of a sink log.") from error


def _entry(content: Any) -> SinkLogEntry:
    _require_keys(content, _ENTRY_KEYS)
    if not isinstance(content["transactions"], list):
        raise TypeError("not a list")
    transactions = tuple(_transaction(each) for each in content["transactions"])
    if len({each.transactional_id for each in transactions}) != len(transactions):
        raise ValueError("duplicate transactional id")
    return SinkLogEntry(
        _bounded(content["batchId"], INT64_MAX), BatchState(content["state"]), transactions
    )


def _transaction(content: Any) -> Transaction:
    _require_keys(content, _TRANSACTION_KEYS)
    name = content["transactionalId"]
    # Kafka's strings have a length of 16 bits; JSON can hold characters that UTF-8 cannot.
    if not isinstance(name, str) or not 0 < len(name.encode()) <= INT16_MAX:
        raise ValueError("not a transactional id")
    return Transaction(
        name,
        _bounded(content["producerId"], INT64_MAX),
        _bounded(content["producerEpoch"], INT16_MAX),
    )


def _require_keys(content: Any, keys: frozenset[str]) -> None:
    if not isinstance(content, dict) or content.keys() != keys:
        raise ValueError("other keys")


def _bounded(value: object, maximum: int) -> int:
    if not is_integer(value) or not 0 <= value <= maximum:
        raise ValueError("not a number of its type")
    return value
