"""The names of a log's files, as in Spark's ``HDFSMetadataLog``."""

from __future__ import annotations

import re
import uuid
from typing import Final

from ...domain.options.option import INT64_MAX

_SUFFIX: Final = ".pyspark-kafka.tmp"
_BATCH: Final = re.compile(r"0|[1-9][0-9]{0,18}")


def file_name(batch_id: int) -> str:
    """Return the name of a batch's file.

    :raises ValueError: if the id is negative.
    """
    if batch_id < 0:
        raise ValueError(f"a batch id must not be negative, got {batch_id}")
    return str(batch_id)


def batch_id_of(name: str) -> int | None:
    """Return the batch of a file, or ``None`` for any other file."""
    batch_id = int(name) if _BATCH.fullmatch(name) else None
    # Spark's ids are Java's longs.
    return batch_id if batch_id is not None and batch_id <= INT64_MAX else None


def temporary_name(purpose: str) -> str:
    """Return a unique name that readers do not mistake for a batch."""
    return f".{purpose}.{uuid.uuid4().hex}{_SUFFIX}"


def is_temporary(name: str) -> bool:
    """Whether a name is from ``temporary_name``. Spark's own temporary files have other names."""
    return name.startswith(".") and name.endswith(_SUFFIX)
