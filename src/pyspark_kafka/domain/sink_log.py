"""What the log of an exactly-once sink remembers: which transactions a micro-batch was written in.

Entries are numbered one after the other, and the newest one is the truth. A batch goes from
``PREPARED``, when all of its records are in Kafka and none can be seen, to ``COMMITTED``; or, when
all of its transactions have timed out first, to ``DROPPED``, and from there the same way again.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import Any, Final, final

from .log_version import require_version
from .transaction import Transaction

VERSION: Final = 1


class BatchState(enum.Enum):
    """How far a micro-batch has come."""

    PREPARED = "prepared"
    COMMITTED = "committed"
    DROPPED = "dropped"


@final
@dataclass(frozen=True, slots=True)
class SinkLogEntry:
    """A micro-batch, how far it has come, and its transactions."""

    batch_id: int
    state: BatchState
    transactions: tuple[Transaction, ...] = ()

    @property
    def committed_through(self) -> int:
        """The last batch whose records can be seen, -1 if there is none."""
        return self.batch_id if self.state is BatchState.COMMITTED else self.batch_id - 1

    def becoming(self, state: BatchState) -> SinkLogEntry:
        """Give the same batch in another state."""
        return SinkLogEntry(self.batch_id, state, self.transactions)

    def to_bytes(self) -> bytes:
        """Give the bytes of a file: the version's line, and JSON."""
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
        """Read the bytes of a file.

        :raises ValueError: if they are of a later version or malformed.
        """
        version, _, text = content.decode(errors="replace").partition("\n")
        require_version(version, VERSION)
        try:
            return _entry(json.loads(text))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("Log file was malformed: it holds no batch of a sink.") from error


def _entry(content: Any) -> SinkLogEntry:
    return SinkLogEntry(
        int(content["batchId"]),
        BatchState(content["state"]),
        tuple(
            Transaction(
                str(transaction["transactionalId"]),
                int(transaction["producerId"]),
                int(transaction["producerEpoch"]),
            )
            for transaction in content["transactions"]
        ),
    )
