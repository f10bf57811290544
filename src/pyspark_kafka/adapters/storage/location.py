"""Where a directory is, in the words of fsspec."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import unquote

if TYPE_CHECKING:
    from ...domain.storage_path import StoragePath

# The second form is that of fsspec's chains of storages.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)(?:://|::)")
# Hadoop prints a path without an authority like this; fsspec takes such a text for a local name.
_HADOOP: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/(?!/)")
_LOCAL: Final = "file"


@final
@dataclass(frozen=True, slots=True)
class Location:
    """A scheme, the URL that fsspec is given, and the storage options with it."""

    scheme: str
    url: str = field(repr=False)
    options: dict[str, Any] = field(repr=False)


def location_of(path: StoragePath) -> Location:
    """Read a path as users spell it: of this machine, of Hadoop, of fsspec, or of the JVM."""
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
    """Take ``key:secret@`` out of an S3 URL: s3fs would take it for a part of the bucket."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    user, at, bucket = authority.rpartition("@")
    key, colon, secret = user.partition(":")
    keys = {"key": unquote(key), "secret": unquote(secret)} if at and colon else {}
    return f"{scheme}{separator}{bucket}{slash}{path}", keys
