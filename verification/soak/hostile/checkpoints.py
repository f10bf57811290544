"""Where the queries of a soak keep their checkpoints, and what can happen to these storages."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from tests.servers.hdfs import Hdfs, run_hdfs
from tests.servers.s3 import S3Server, run_s3
from tests.servers.small_disk import SmallDisk, can_mount, mounted_at
from tests.servers.storage_proxy import StorageProxy, storage_behind

S3: Final = "s3"
HDFS: Final = "hdfs"
SMALL_DISK: Final = "small disk"
STORAGES: Final = (S3, HDFS, SMALL_DISK)
"""Offered by an arena whose checkpoints are there."""

_DISK_MB: Final = 16
_SERVERS: Final[dict[str, Callable[[], AbstractContextManager[S3Server | Hdfs]]]] = {
    S3: run_s3,
    HDFS: run_hdfs,
}


_NO_SERVERS: Final[Mapping[str, S3Server | Hdfs]] = MappingProxyType({})


@dataclass(slots=True)
class Checkpoints:
    """Directories for checkpoints by the name of their storage, and what faults act on."""

    paths: dict[str, StoragePath] = field(default_factory=dict)
    proxies: dict[str, StorageProxy] = field(default_factory=dict)
    disks: dict[str, SmallDisk] = field(default_factory=dict)

    def path_of(self, number: int, query: str, directory: Path) -> StoragePath:
        """Return the checkpoint of a query: in each storage in turn, or in a local directory."""
        places = list(self.paths.values()) or [StoragePath(str(directory))]
        return places[number % len(places)].child(query)


@contextmanager
def run_checkpoints(
    storages: Sequence[str] = STORAGES,
    seed: int = 0,
    servers: Mapping[str, S3Server | Hdfs] = _NO_SERVERS,
) -> Iterator[Checkpoints]:
    """Run storages in their order, but for ``servers`` that run already.

    There is no small disk where this user may not mount one.
    """
    found = Checkpoints()
    with ExitStack() as running:
        for storage in storages:
            if storage in _SERVERS:
                server = servers.get(storage) or running.enter_context(_SERVERS[storage]())
                behind = storage_behind(server, seed)
                found.proxies[storage], found.paths[storage] = running.enter_context(behind)
            elif can_mount():
                prefix = "hostile-checkpoints-"
                directory = running.enter_context(tempfile.TemporaryDirectory(prefix=prefix))
                found.disks[storage] = running.enter_context(mounted_at(Path(directory), _DISK_MB))
                found.paths[storage] = StoragePath(directory)
        yield found
