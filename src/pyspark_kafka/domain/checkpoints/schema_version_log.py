"""The log of the schema versions with which a stream reads its columns.

It is a directory of its own next to the log of initial offsets, whose one file the JVM connector
and earlier versions of this library read. Each entry is a line with the version of the format, and
a JSON object: ``{"value":{"subject":"orders-value","version":3}}``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple, final

from ..json_text import is_integer, read_json
from ..text import excerpt
from .checkpoint_log import require_version

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = 1
DIRECTORY: Final = "schemas"
"""The directory's name, below ``metadataPath``."""


@final
class SchemaVersion(NamedTuple):
    """A version of a subject."""

    subject: str
    version: int


def write_schema_versions(versions: Mapping[str, SchemaVersion]) -> bytes:
    """Return the content of an entry; the keys are ``key`` and ``value``."""
    content = {column: found._asdict() for column, found in sorted(versions.items())}
    return f"v{VERSION}\n{json.dumps(content, separators=(',', ':'))}".encode()


def read_schema_versions(content: bytes) -> dict[str, SchemaVersion]:
    """Parse the content of an entry.

    :raises ValueError: if it is malformed or of a later version.
    """
    try:
        version, _, text = content.decode().partition("\n")
    except UnicodeDecodeError as error:
        raise ValueError("Log file was malformed: it is not text.") from error
    require_version(version, VERSION)
    try:
        parsed = read_json(text)
    except ValueError as error:
        raise ValueError(f"Log file was malformed: {excerpt(text)}") from error
    columns = parsed.items() if isinstance(parsed, dict) else ()
    found = {column: _schema_version(entry) for column, entry in columns}
    if not found or None in found.values():
        raise ValueError(f"Log file was malformed: {excerpt(text)}")
    return {column: entry for column, entry in found.items() if entry is not None}


def _schema_version(entry: object) -> SchemaVersion | None:
    match entry:
        case {"subject": str(subject), "version": version} if is_integer(version) and version > 0:
            return SchemaVersion(subject, version)
    return None
