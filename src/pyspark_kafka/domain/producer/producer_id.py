"""Who writes, and how the records of a partition are numbered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

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
