"""The names of a log's files, which are those of Spark's ``HDFSMetadataLog``."""

from __future__ import annotations

import re
import uuid
from typing import Final

_MARK: Final = ".pyspark-kafka.tmp"
_BATCH: Final = re.compile(r"0|[1-9][0-9]{0,18}")


def file_name(batch_id: int) -> str:
    """Give the name of a batch's file.

    :raises ValueError: if the id is negative.
    """
    if batch_id < 0:
        raise ValueError(f"a batch id is not negative, as {batch_id} is")
    return str(batch_id)


def batch_id_of(name: str) -> int | None:
    """Give the batch that a file belongs to, or ``None`` for any other file."""
    return int(name) if _BATCH.fullmatch(name) else None


def temporary_name(purpose: str) -> str:
    """Give a name that nobody else has, and that no reader takes for a batch."""
    return f".{purpose}.{uuid.uuid4().hex}{_MARK}"


def is_temporary(name: str) -> bool:
    """Whether ``temporary_name`` made it. Spark's own temporary files have other names."""
    return name.startswith(".") and name.endswith(_MARK)
