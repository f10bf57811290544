"""Do what the package can without extras; the argument is JSON with names of absent packages."""

from __future__ import annotations

import json
import sys
import tempfile
from importlib import import_module
from importlib.abc import MetaPathFinder
from pathlib import Path
from pkgutil import walk_packages

import filelock  # noqa: F401  # has another lock than fcntl's on Windows only

ABSENT = json.loads(sys.argv[1])


class Absent(MetaPathFinder):
    """Finds no absent package, and lets the finders after it look for others."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname in ABSENT:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


for name in ABSENT:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Absent())

import pyarrow as pa

import pyspark_kafka
from pyspark_kafka.__main__ import main
from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options

NEED_EXTRAS = (
    "adapters.confluent",
    "adapters.values.protobuf",
    "adapters.spark",
    "bootstrap.spark",
    "testing",
)
MEMORY = {"kafka.bootstrap.servers": "memory", "client": "memory"}


def import_base() -> None:
    """Import each module that needs no extra."""
    for module in walk_packages(pyspark_kafka.__path__, "pyspark_kafka."):
        if not module.name.removeprefix("pyspark_kafka.").startswith(NEED_EXTRAS):
            import_module(module.name)


def read(cluster: MemoryCluster, directory: Path) -> None:
    """Begin a stream whose values have the schema of a file, and log where it begins."""
    (directory / "id.avsc").write_text('"long"')
    given = {
        "subscribe": "t",
        "metadataPath": str(directory / "log"),
        "valueFormat": "avro",
        "valueSchema": str(directory / "id.avsc"),
    }
    container = pyspark_kafka.container_for(parse_source_options(MEMORY | given, QueryKind.STREAM))
    container.memory_cluster.override(cluster)
    assert container.micro_batch_stream().initial_offset().to_dict() == {"t": {"0": 0}}
    assert (directory / "log" / "0").exists()
    assert [one.name for one in container.value_schemas().resolve().typed] == ["value"]


def write(cluster: MemoryCluster, directory: Path) -> None:
    """Write a batch exactly once."""
    given = {
        "topic": "t",
        "deliveryGuarantee": "exactly-once",
        "metadataPath": str(directory / "sink"),
    }
    container = pyspark_kafka.sink_container_for(
        parse_sink_options(MEMORY | given, QueryKind.STREAM)
    )
    container.memory_cluster.override(cluster)
    sink = container.kafka_sink()
    sink.recover()
    rows = pa.RecordBatch.from_pydict({"value": pa.array([b"v"])})
    sink.commit(0, "q", [container.sink_task().write([rows], "q-0")])
    assert any((directory / "sink").rglob("*"))


def run_commands(directory: Path) -> None:
    """Show offsets, and begin to measure lag."""
    for name in ("offsets", "commits"):
        (directory / name).mkdir()
        (directory / name / "0").write_text('v1\n{}\n{"t":{"0":4}}')
    assert main(["offsets", "show", str(directory)]) == 0
    nowhere = ["--bootstrap-servers", "127.0.0.1:1", "--option", "kafka.default.api.timeout.ms=1"]
    assert main(["lag", "--once", "--checkpoint", str(directory), *nowhere]) == 1


if __name__ == "__main__":
    import_base()
    with tempfile.TemporaryDirectory() as directory:
        memory = MemoryCluster()
        memory.create_topic("t")
        for work in (read, write):
            work(memory, Path(directory))
        run_commands(Path(directory))
