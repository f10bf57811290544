"""The file ``metadata`` of a query's checkpoint, which holds the query's id.

Spark's ``StreamMetadata``: JSON with a UUID.
"""

from __future__ import annotations

import json
import uuid
from typing import Final

from ...domain.checkpoints.storage_path import StoragePath
from ...domain.errors import MetadataLogError
from ...domain.json_text import read_json
from .failures import failures_of
from .storages import opener_of

_NAME: Final = "metadata"
_MAX_BYTES: Final = 4_096


def query_id_of(checkpoint: StoragePath) -> str:
    """Return the id of a checkpoint's query; a new checkpoint gets one.

    :raises MetadataLogError: if the storage fails, or the file is malformed.
    :raises UnsupportedFeatureError: if the storage cannot create a file exclusively.
    """
    path = checkpoint.child(_NAME)
    with failures_of(path):
        directory = opener_of(checkpoint)()
        directory.create(_NAME, json.dumps({"id": str(uuid.uuid4())}).encode())
    return stored_query_id(checkpoint)


def stored_query_id(checkpoint: StoragePath) -> str:
    """Return the id that a checkpoint's query has already; raise as ``query_id_of``."""
    path = checkpoint.child(_NAME)
    with failures_of(path):
        content = opener_of(checkpoint)().read(_NAME)
    try:
        # What is read back is checked: the id becomes a part of transactional ids.
        return str(uuid.UUID(read_json((content or b"")[:_MAX_BYTES])["id"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = "The file is malformed: it has no query id. Restore it from a backup"
        raise MetadataLogError(str(path), problem) from error
