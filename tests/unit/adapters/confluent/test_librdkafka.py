import ctypes
import ctypes.util
import sys

import confluent_kafka
import pytest

from pyspark_kafka.adapters.confluent import librdkafka
from pyspark_kafka.adapters.confluent.librdkafka import load
from pyspark_kafka.adapters.confluent.record_reader import ConfluentRecordReader
from pyspark_kafka.adapters.confluent.record_writer import ConfluentRecordWriter
from pyspark_kafka.adapters.confluent.stream_client import ConfluentStreamClient
from pyspark_kafka.domain.errors import UnsupportedFeatureError

from ..options import sink_of, source_of


@pytest.fixture(autouse=True)
def _unloaded():
    load.cache_clear()
    yield
    load.cache_clear()


def test_the_library_is_the_one_that_confluent_kafka_uses():
    library = load()
    assert library.rd_kafka_version() == confluent_kafka.libversion()[1]


def test_a_library_that_is_not_there_is_reported(monkeypatch):
    monkeypatch.setattr(confluent_kafka.cimpl, "__file__", "librdkafka-that-is-not.so")
    with pytest.raises(UnsupportedFeatureError) as caught:
        load()
    assert str(caught.value) == (
        "[KAFKA_UNSUPPORTED_FEATURE] The client 'confluent' cannot run here: it needs librdkafka's "
        "library; use the client 'kafka-python'."
    )


def test_a_function_that_is_not_there_is_named(monkeypatch):
    """An extension may hide the functions of its library."""
    monkeypatch.setattr(confluent_kafka.cimpl, "__file__", ctypes.util.find_library("c") or "")
    with pytest.raises(UnsupportedFeatureError, match="rd_kafka_consume_batch_queue"):
        load()


def test_on_windows_the_library_is_opened_itself(monkeypatch, tmp_path):
    opened: list[str] = []
    library = tmp_path / "confluent_kafka.libs" / "librdkafka-0cb9.dll"
    library.parent.mkdir()
    library.touch()
    (library.parent / "librdkafkacpp.dll").touch()
    real = load()
    load.cache_clear()

    def open_library(name: str) -> ctypes.CDLL:
        opened.append(name)
        return real

    monkeypatch.setattr(
        confluent_kafka.cimpl, "__file__", str(tmp_path / "confluent_kafka" / "c.pyd")
    )
    monkeypatch.setattr(librdkafka, "_is_windows", True)
    monkeypatch.setattr(ctypes, "CDLL", open_library)
    load()
    assert opened == [str(library)]


def test_another_machine_is_refused(monkeypatch):
    """The kernels read librdkafka's structures of a 64-bit little-endian machine."""
    monkeypatch.setattr(sys, "byteorder", "big")
    with pytest.raises(UnsupportedFeatureError, match="a 64-bit little-endian machine"):
        load()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ConfluentRecordReader(source_of("confluent")),
        lambda: ConfluentRecordWriter(sink_of("confluent")),
        lambda: ConfluentStreamClient(source_of("confluent"), None),
    ],
    ids=["reader", "writer", "continuous"],
)
def test_nothing_runs_without_the_library(make, monkeypatch):
    monkeypatch.setattr(confluent_kafka.cimpl, "__file__", "librdkafka-that-is-not.so")
    with pytest.raises(UnsupportedFeatureError, match="use the client 'kafka-python'"):
        make()


def test_a_library_that_is_too_old_is_not_called(monkeypatch):
    monkeypatch.setattr(librdkafka, "OLDEST", (255, 0, 0))
    found = confluent_kafka.libversion()[0]
    with pytest.raises(
        UnsupportedFeatureError, match=f"librdkafka 255.0.0 or later, and not {found}"
    ):
        load()
