"""The storages on which a log can be kept, and how each is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ...domain.errors import MissingDependencyError, UnsupportedFeatureError
from .hdfs_directory import HdfsDirectory, webhdfs_options
from .local_directory import LocalDirectory
from .location import Location, location_of
from .memory_directory import MemoryDirectory
from .object_directory import ObjectDirectory

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.storage_path import StoragePath
    from .log_directory import LogDirectory

_EXTRAS: Final = {"s3": "s3", "s3a": "s3", "webhdfs": "hdfs"}


def opener_of(path: StoragePath) -> Callable[[], LogDirectory]:
    """Give what opens the directory of a path, afresh with every call. Nothing connects yet.

    :raises UnsupportedFeatureError: if nobody knows how to make a file there just once.
    """
    location = location_of(path)
    opening = _OPENINGS.get(location.scheme)
    if opening is None:
        raise UnsupportedFeatureError(
            "A metadata log",
            f"be kept on '{location.scheme}', of which it is not known that two writers of one "
            f"file are told apart. Supported are {', '.join(_OPENINGS)}",
        )
    return lambda: opening(location)


def _local(location: Location) -> LogDirectory:
    return LocalDirectory(Path(location.url).expanduser().absolute())


def _memory(location: Location) -> LogDirectory:
    return MemoryDirectory(*_filesystem(location.url, location.options))


def _hdfs(location: Location) -> LogDirectory:
    # pyarrow's rename over libhdfs deletes what is in its way. So hdfs:// goes over WebHDFS too, at
    # the same host; the port in such a URL is that of another protocol.
    url = urlsplit(location.url)
    given: dict[str, Any] = {"host": url.hostname, "user": url.username, "password": url.password}
    if location.scheme == "webhdfs":
        given["port"] = url.port
    named = {name: value for name, value in given.items() if value is not None}
    options = webhdfs_options({**named, **location.options})
    if "host" not in options:
        raise OSError("the URL names no host, and the storage options have no 'host' either")
    filesystem, path = _filesystem(f"webhdfs://{options.pop('host')}{url.path}", options)
    return HdfsDirectory(filesystem, path)


def _s3(location: Location) -> LogDirectory:
    # One request for an object, instead of one more that asks for its length.
    options = {"max_concurrency": 1, **location.options}
    return ObjectDirectory(*_filesystem(location.url, options))


def _objects(location: Location) -> LogDirectory:
    return ObjectDirectory(*_filesystem(location.url, location.options))


def _filesystem(url: str, options: dict[str, Any]) -> tuple[Any, str]:
    """Make a filesystem of one's own, which remembers no listing: others write as well."""
    import fsspec

    scheme = url.partition("://")[0]
    own = {"skip_instance_cache": True, "use_listings_cache": False}
    try:
        filesystem, path = fsspec.url_to_fs(url, **{**options, **own})
    except ImportError as error:
        extra = _EXTRAS.get(scheme)
        if extra is None or error.name == "requests_kerberos":
            raise OSError(f"what '{scheme}' needs is not installed: {error}") from error
        raise MissingDependencyError(f"What opens '{scheme}://'", extra) from error
    return filesystem, str(path)


_OPENINGS: Final[dict[str, Callable[[Location], LogDirectory]]] = {
    "file": _local,
    "hdfs": _hdfs,
    "webhdfs": _hdfs,
    "s3": _s3,
    "s3a": _s3,
    "gs": _objects,
    "gcs": _objects,
    "abfs": _objects,
    "abfss": _objects,
    "az": _objects,
    "memory": _memory,
}
