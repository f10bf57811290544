"""The supported storages of metadata logs, and where their directories are."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, final
from urllib.parse import unquote, urlsplit

from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

from ...domain.checkpoints.storage_path import StoragePath
from ...domain.errors import MissingDependencyError, UnsupportedFeatureError
from .directory import LogDirectory, LogFile, require_size
from .local import LocalDirectory
from .objects import ObjectDirectory

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


def place_of(path: StoragePath) -> str:
    """Return the place of a path: the same text for its spellings, without logins.

    Different places may be the same directory, such as by two names of a server; equal places
    always are.
    """
    location = location_of(path)
    if location.scheme == _LOCAL:
        return str(_local_path(location).resolve())
    scheme = _SAME_SCHEME.get(location.scheme, location.scheme)
    authority, _, names = location.url.partition("://")[2].partition("/")
    if scheme == "hdfs":
        authority = urlsplit(location.url).hostname or ""
    return "/".join([f"{scheme}://{authority}", *filter(None, names.split("/"))])


def _local_path(location: Location) -> Path:
    try:
        return Path(location.url).expanduser()
    except RuntimeError as error:
        raise OSError(
            f"'~' is unknown ({error}): set HOME, or write the path without '~'"
        ) from error


_SAME_SCHEME: Final = {"s3a": "s3", "gcs": "gs", "abfss": "abfs", "az": "abfs", "webhdfs": "hdfs"}


def _without_keys(url: str) -> tuple[str, dict[str, str]]:
    """Remove ``key:secret@`` from an S3 URL: s3fs would parse it as a part of the bucket."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    user, at, bucket = authority.rpartition("@")
    key, colon, secret = user.partition(":")
    keys = {"key": unquote(key), "secret": unquote(secret)} if at and colon else {}
    return f"{scheme}{separator}{bucket}{slash}{path}", keys


@final
class MemoryDirectory(LogDirectory):
    """Files in the dictionary that all ``memory://`` filesystems of a process share.

    fsspec's own calls are not atomic, and its readers share one position in a file. The
    dictionary's ``setdefault`` is atomic.
    """

    def __init__(self, filesystem: MemoryFileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._prefix = f"{path}/"

    def create(self, name: str, content: bytes) -> bool:
        path = self._prefix + name
        file = MemoryFile(self._filesystem, path, content)
        return self._filesystem.store.setdefault(path, file) is file

    def replace(self, name: str, content: bytes) -> None:
        path = self._prefix + name
        self._filesystem.store[path] = MemoryFile(self._filesystem, path, content)

    def read(self, name: str) -> bytes | None:
        file = self._filesystem.store.get(self._prefix + name)
        return None if file is None else require_size(bytes(file.getvalue()))

    def files(self) -> Iterator[LogFile]:
        for path in tuple(self._filesystem.store):
            name = path.removeprefix(self._prefix)
            if name != path and "/" not in name:
                yield LogFile(name, None)

    def remove(self, names: Collection[str]) -> None:
        for name in names:
            self._filesystem.store.pop(self._prefix + name, None)


_PACKAGES: Final = {
    **dict.fromkeys(("s3", "s3a"), ("s3fs", "s3")),
    **dict.fromkeys(("gs", "gcs"), ("gcsfs", "")),
    **dict.fromkeys(("abfs", "abfss", "az"), ("adlfs", "")),
}
"""The package that a storage needs, and the extra that has it, if there is one."""


def opener_of(path: StoragePath) -> Callable[[], LogDirectory]:
    """Return a function that opens the directory of a path; nothing connects before its call.

    :raises MissingDependencyError: if the storage needs a package that is not installed.
    :raises UnsupportedFeatureError: if the storage is not supported.
    """
    location = location_of(path)
    open_directory = _OPENERS.get(location.scheme)
    if open_directory is None:
        raise UnsupportedFeatureError(
            "A metadata log",
            f"be kept on '{location.scheme}', which may not arbitrate between concurrent writers. "
            f"Supported are {', '.join(_OPENERS)}",
        )
    package, extra = _PACKAGES.get(location.scheme, ("", ""))
    if package and find_spec(package) is None:
        raise MissingDependencyError(
            f"The package for '{location.scheme}://'", extra, package=package
        )
    return lambda: open_directory(location)


def _hdfs(location: Location) -> LogDirectory:
    from .hdfs import HdfsDirectory
    from .hdfs_server import HdfsServer

    # pyarrow's rename over libhdfs replaces existing files. So hdfs:// uses WebHDFS too, on the
    # same host; the port in an hdfs:// URL belongs to another protocol.
    url = urlsplit(location.url)
    parts = {"host": url.hostname, "user": url.username, "password": url.password}
    named: dict[str, Any] = {name: unquote(part) for name, part in parts.items() if part}
    if location.scheme == "webhdfs" and url.port is not None:
        named["port"] = url.port
    options = {**named, **location.options}
    if "host" not in options:
        raise OSError("neither the URL nor the storage options have a 'host'")
    return HdfsDirectory(HdfsServer(**options), url.path)


def _s3(location: Location) -> LogDirectory:
    # One request per object, instead of another one for its length.
    options = {"max_concurrency": 1, **location.options}
    return ObjectDirectory(*_filesystem(location.url, options))


def _objects(location: Location) -> LogDirectory:
    return ObjectDirectory(*_filesystem(location.url, location.options))


def _filesystem(url: str, options: dict[str, Any]) -> tuple[Any, str]:
    """Return a new filesystem without a cache of listings, since other processes write too."""
    from fsspec.core import url_to_fs

    own = {"skip_instance_cache": True, "use_listings_cache": False}
    filesystem, path = url_to_fs(url, **{**options, **own})
    return filesystem, str(path)


_OPENERS: Final[dict[str, Callable[[Location], LogDirectory]]] = {
    "file": lambda location: LocalDirectory(_local_path(location).absolute()),
    "hdfs": _hdfs,
    "webhdfs": _hdfs,
    "s3": _s3,
    "s3a": _s3,
    "gs": _objects,
    "gcs": _objects,
    "abfs": _objects,
    "abfss": _objects,
    "az": _objects,
    "memory": lambda location: MemoryDirectory(*_filesystem(location.url, location.options)),
}
