"""A sink's transactions and their ids."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

_UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NUMBER: Final = "(?:0|[1-9][0-9]{0,9})"


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


@final
@dataclass(frozen=True, slots=True)
class SinkTaskId:
    """One attempt of one task of a micro-batch."""

    query_id: str
    batch_id: int
    partition: int
    attempt: int

    def transactional_id(self, prefix: str) -> str:
        """Return the transactional id of the attempt.

        The same attempt of the next batch has the same id, and fences this one. Attempts have
        different ids: a speculative attempt must not fence the one that wins.
        """
        return f"{query_id_prefix(prefix, self.query_id)}{self.partition}-{self.attempt}"


def query_id_prefix(prefix: str, query_id: str) -> str:
    """Return what all transactional ids of a query start with."""
    return f"{prefix}-{query_id}-"


def is_id_of_query(transactional_id: str, prefix: str | None, query_id: str | None) -> bool:
    """Return whether ``SinkTaskId`` makes such an id for a query.

    ``None`` stands for any prefix, and for the id of any query, which Spark makes as a UUID.
    """
    first = ".+" if prefix is None else re.escape(prefix)
    query = _UUID if query_id is None else re.escape(query_id)
    form = f"{first}-{query}-{_NUMBER}-{_NUMBER}"
    return re.fullmatch(form, transactional_id, re.DOTALL) is not None
