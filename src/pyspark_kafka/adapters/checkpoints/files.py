"""Two files of any storage: a checkpoint's ``metadata``, with the query's id, and a schema."""

from __future__ import annotations

import json
import uuid
from typing import Final

from ...domain.checkpoints.storage_path import StoragePath
from ...domain.errors import MetadataLogError, OptionsError, PysparkKafkaError
from ...domain.json_text import read_json
from .directory import OversizedFileError, failures_of, problem_of
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
        # An id that is read back is checked, since it becomes a part of transactional ids.
        return str(uuid.UUID(read_json((content or b"")[:_MAX_BYTES])["id"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = "The file is malformed: it has no query id. Restore it from a backup"
        raise MetadataLogError(str(path), problem) from error


MAX_SCHEMA_BYTES: Final = 16 * 1024 * 1024
"""The largest file; descriptors of thousands of messages have a few MiB."""

_TOO_LARGE: Final = f"it is larger than {MAX_SCHEMA_BYTES // 2**20} MiB"


def read_schema_file(path: StoragePath) -> bytes:
    """Return the content of a file.

    :raises OptionsError: if it does not exist, is too large or cannot be read; without its content.
    :raises MissingDependencyError: if a package for the storage is not installed.
    :raises UnsupportedFeatureError: if the storage is not supported.
    """
    parent, separator, name = path.url.strip().rpartition("/")
    directory = StoragePath(parent or separator or ".", path.storage_options)
    open_directory = opener_of(directory)
    try:
        content = open_directory().read(name)
    except PysparkKafkaError:
        raise
    except OversizedFileError:
        raise _unusable(path, _TOO_LARGE) from None
    except Exception as error:  # noqa: BLE001 - the storages' exceptions have no common base
        # Not chained: it may contain a token.
        raise _unusable(path, problem_of(error, path)) from None
    if content is None:
        raise _unusable(path, "it does not exist")
    if len(content) > MAX_SCHEMA_BYTES:
        raise _unusable(path, _TOO_LARGE)
    return content


def _unusable(path: StoragePath, reason: str) -> OptionsError:
    return OptionsError([f"The schema file {path} cannot be used: {reason}"])
