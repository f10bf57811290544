"""What can go wrong with a batch, as far as a producer acts on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, final

MESSAGE_TOO_LARGE: Final = (
    "The request included a message larger than the max message size the server will accept."
)
"""The text of Java's ``Errors.MESSAGE_TOO_LARGE``."""


class ProduceError(Enum):
    """Classes of Kafka's errors; each client maps its own to them."""

    DUPLICATE_SEQUENCE = auto()
    MESSAGE_TOO_LARGE = auto()
    PRODUCER_FENCED = auto()

    INVALID_PRODUCER_EPOCH = auto()
    """A fence within a transaction, lost sequence numbers without one."""

    SEQUENCE_LOST = auto()
    """The broker does not know, or not any more, which sequence number comes next."""

    RETRIABLE = auto()
    DISCONNECTED = auto()
    """Retriable, and the cluster counts as unreachable if it lasts."""

    FATAL = auto()


@final
@dataclass(frozen=True, slots=True)
class Failure:
    """An error, and what the client or the broker says of it."""

    error: ProduceError
    reason: str
