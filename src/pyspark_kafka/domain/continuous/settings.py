"""The settings of a continuous query beside the options of its source and sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class ContinuousSettings:
    """What every task of a query needs to know; pickled to executors.

    ``group_id`` is the group of the input's offsets and the beginning of transactional ids, used
    with exactly-once only.
    """

    group_id: str

    def transactional_id(self, topic: str, partition: int) -> str:
        """Return the transactional id under which the outputs of a partition are written."""
        return f"{self.group_id}-{topic}-{partition}"
