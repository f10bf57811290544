"""Reading the file of a schema from any storage."""

from __future__ import annotations

from typing import Final

from ...domain.checkpoints.storage_path import StoragePath
from ...domain.errors import OptionsError, PysparkKafkaError
from .failures import problem_of
from .log_directory import OversizedFileError
from .storages import opener_of

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
