"""Kafka clients by name."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pyspark_kafka import (
    QueryKind,
    adapters,
    container_for,
    parse_sink_options,
    parse_source_options,
    sink_container_for,
)
from pyspark_kafka.bootstrap import plugins
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.reading.records import ALL_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODULE = """
from ..memory.client import memory_client
from ..memory.cluster import MemoryCluster

cluster = MemoryCluster()
cluster.create_topic("orders")
CLIENT = memory_client(lambda: cluster)
"""

OPTIONS = {"client": "carrier-pigeon", "kafka.bootstrap.servers": "loft"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add a folder with a client to the adapters."""
    package = tmp_path / "carrier_pigeon"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "client.py").write_text(MODULE)
    monkeypatch.setattr(adapters, "__path__", [*adapters.__path__, str(tmp_path)])
    yield
    for name in [name for name in sys.modules if ".carrier_pigeon" in name]:
        del sys.modules[name]
    vars(adapters).pop("carrier_pigeon", None)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a client's line to the table."""
    added = {"carrier-pigeon": "pyspark_kafka.adapters.carrier_pigeon.client"}
    monkeypatch.setattr(plugins, "CLIENTS", {**plugins.CLIENTS, **added})


@pytest.mark.usefixtures("folder", "line")
def test_a_client_takes_one_folder_and_one_line() -> None:
    """Containers find the client by its name; it writes records and reads them."""
    sink = sink_container_for(parse_sink_options({**OPTIONS, "topic": "orders"}, QueryKind.BATCH))
    sink.sink_task().write([pa.RecordBatch.from_pydict({"value": ["tea", "coffee"]})])
    sink.shutdown_resources()

    source = container_for(
        parse_source_options({**OPTIONS, "subscribe": "orders"}, QueryKind.BATCH)
    )
    read = source.range_read().read
    ranges = source.batch().plan_input_partitions()
    values = [
        value for one in ranges for batch in read(one, ALL_COLUMNS) for value in batch["value"]
    ]
    source.shutdown_resources()
    assert [value.as_py() for value in values] == [b"tea", b"coffee"]
    assert "carrier-pigeon" in plugins.client_names()


@pytest.mark.usefixtures("folder")
def test_a_folder_without_its_line_is_not_a_client() -> None:
    """Only clients in the table exist."""
    with pytest.raises(OptionsError, match="'carrier-pigeon'"):
        container_for(parse_source_options({**OPTIONS, "subscribe": "orders"}, QueryKind.BATCH))
