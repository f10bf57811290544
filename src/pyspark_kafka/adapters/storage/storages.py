"""The supported storages of metadata logs."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ...domain.checkpoints.storage_path import StoragePath
from ...domain.errors import MissingDependencyError, UnsupportedFeatureError
from .local_directory import LocalDirectory
from .location import Location, location_of
from .log_directory import LogDirectory
from .memory_directory import MemoryDirectory
from .object_directory import ObjectDirectory

_PACKAGES: Final = {
    **dict.fromkeys(("s3", "s3a"), ("s3fs", "s3")),
    **dict.fromkeys(("hdfs", "webhdfs"), ("requests", "hdfs")),
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
    from .hdfs_directory import HdfsDirectory, webhdfs_options

    # pyarrow's rename over libhdfs replaces existing files. So hdfs:// uses WebHDFS too, on the
    # same host; the port in an hdfs:// URL belongs to another protocol.
    url = urlsplit(location.url)
    given: dict[str, Any] = {"host": url.hostname, "user": url.username, "password": url.password}
    if location.scheme == "webhdfs":
        given["port"] = url.port
    named = {name: value for name, value in given.items() if value is not None}
    options = webhdfs_options({**named, **location.options})
    if "host" not in options:
        raise OSError("neither the URL nor the storage options have a 'host'")
    filesystem, path = _filesystem(f"webhdfs://{options.pop('host')}{url.path}", options)
    return HdfsDirectory(filesystem, path)


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
    "file": lambda location: LocalDirectory(Path(location.url).expanduser().absolute()),
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
