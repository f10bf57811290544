from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.adapters.storage import hdfs_directory
from pyspark_kafka.adapters.storage.fsspec_metadata_log import FsspecMetadataLog
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.storage_path import StoragePath

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Yield a port that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("call", ["latest", "add"])
def test_a_server_that_never_answers_ends_a_call(
    silent_port: int, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A hanging NameNode is an error within a bounded time."""
    monkeypatch.setattr(hdfs_directory, "_SECONDS", 0.1)
    log = FsspecMetadataLog(StoragePath(f"webhdfs://127.0.0.1:{silent_port}/x"))
    with pytest.raises(MetadataLogError, match="does not answer: ReadTimeout"):
        getattr(log, call)(*([0, b""] if call == "add" else []))
