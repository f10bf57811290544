"""The location of a directory, as fsspec takes it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final, final
from urllib.parse import unquote

from ...domain.checkpoints.storage_path import StoragePath

# The second form is for fsspec's chained filesystems.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)(?:://|::)")
# Hadoop prints paths without an authority like this; fsspec would parse them as local paths.
_HADOOP: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/(?!/)")
_LOCAL: Final = "file"


@final
@dataclass(frozen=True, slots=True)
class Location:
    """A scheme, and the URL and storage options for fsspec."""

    scheme: str
    url: str = field(repr=False)
    options: dict[str, Any] = field(repr=False)


def location_of(path: StoragePath) -> Location:
    """Parse a path in any spelling: a local path, or a URL of Hadoop, fsspec or the JVM."""
    url = _HADOOP.sub(r"\1:///", path.url.strip())
    found = _SCHEME.match(url)
    scheme = found[1].lower() if found else _LOCAL
    if found and scheme == _LOCAL:
        url = url[found.end() :]
    options = path.options
    if scheme in {"s3", "s3a"}:
        url, keys = _without_keys(url)
        options = {**keys, **options}
    return Location(scheme, url, options)


def _without_keys(url: str) -> tuple[str, dict[str, str]]:
    """Remove ``key:secret@`` from an S3 URL: s3fs would parse it as a part of the bucket."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    user, at, bucket = authority.rpartition("@")
    key, colon, secret = user.partition(":")
    keys = {"key": unquote(key), "secret": unquote(secret)} if at and colon else {}
    return f"{scheme}{separator}{bucket}{slash}{path}", keys
