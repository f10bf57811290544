"""Objects of Google Cloud Storage and Azure, whose clients repeat requests."""

from collections.abc import Mapping
from typing import Any

import pytest
from fsspec.asyn import AsyncFileSystem

from pyspark_kafka.adapters.checkpoints.objects import ObjectDirectory


class Storage(AsyncFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Objects with metadata, as gcsfs or adlfs writes them; loses the responses for some names."""

    def __init__(self, *protocol: str) -> None:
        super().__init__(skip_instance_cache=True)
        self.protocol = protocol
        self.objects: dict[str, tuple[bytes, Mapping[str, str]]] = {}
        self.lost: set[str] = set()

    async def _pipe_file(
        self,
        path: str,
        value: bytes,
        mode: str = "overwrite",
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if path in self.objects and mode == "create":
            raise FileExistsError(path)
        if "gs" in self.protocol:
            assert headers is None
        else:
            assert metadata is None  # adlfs passes its own
            given = headers or {}
            metadata = {name.removeprefix("x-ms-meta-"): text for name, text in given.items()}
        self.objects[path] = value, metadata or {}
        name = path.rpartition("/")[2]
        if name in self.lost:
            # The client asks again.
            raise FileExistsError(path)

    async def _info(self, path: str) -> dict[str, Any]:
        if path not in self.objects:
            raise FileNotFoundError(path)
        return {"name": path, "type": "file", "metadata": self.objects[path][1]}

    async def _rm(self, paths: list[str]) -> None:
        for path in paths:
            self.objects.pop(path, None)


@pytest.fixture(params=[("gs", "gcs"), ("abfs", "az", "abfss")], ids=["gcsfs", "adlfs"])
def storage(request):
    return Storage(*request.param)


def test_an_object_is_created_once(storage):
    one, other = (ObjectDirectory(storage, "bucket/log") for _ in range(2))
    assert one.create("0", b"a")
    assert not other.create("0", b"a")
    assert not one.create("0", b"a")


def test_the_writer_of_an_object_is_known_after_a_response_was_lost(storage):
    """Else the only driver of a query would take itself for another one."""
    storage.lost = {"1"}
    one, other = (ObjectDirectory(storage, "bucket/log") for _ in range(2))
    assert one.create("1", b"a")
    assert not other.create("1", b"a")


def test_an_object_of_an_earlier_version_is_of_another_writer(storage):
    storage.objects["bucket/log/0"] = b"a", {}
    assert not ObjectDirectory(storage, "bucket/log").create("0", b"a")
