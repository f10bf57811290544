"""Finding librdkafka's C API, and doing without it."""

from __future__ import annotations

import ctypes
import ctypes.util
import logging
from typing import TYPE_CHECKING

import confluent_kafka
import pytest

from pyspark_kafka.adapters.confluent import librdkafka, record_reader
from pyspark_kafka.adapters.confluent.librdkafka import LibraryUnusableError, load
from pyspark_kafka.adapters.confluent.record_reader import ConfluentRecordReader
from pyspark_kafka.domain.options import QueryKind, SourceOptions, parse_source_options
from pyspark_kafka.domain.reading.offset_range import OffsetRange
from pyspark_kafka.domain.reading.projection import ALL_COLUMNS
from pyspark_kafka.domain.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def unloaded() -> Iterator[None]:
    """Reset the cached library before and after."""
    load.cache_clear()
    yield
    load.cache_clear()


@pytest.fixture
def options() -> SourceOptions:
    """Return options for a broker that is never used."""
    return parse_source_options(
        {"kafka.bootstrap.servers": "127.0.0.1:1", "client": "confluent", "subscribe": "t"},
        QueryKind.BATCH,
    )


def test_the_library_is_the_one_that_confluent_kafka_uses() -> None:
    """Both say the same version; on the machines that run these tests there is one."""
    library = load()
    assert library.rd_kafka_version() == confluent_kafka.libversion()[1]


@pytest.mark.usefixtures("unloaded")
def test_a_library_that_is_not_there_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the wheel has none and the system has none, that is what is missing."""
    monkeypatch.setattr(librdkafka, "_library_names", lambda: iter(["librdkafka-that-is-not.so"]))
    with pytest.raises(LibraryUnusableError, match="librdkafka's library"):
        load()


@pytest.mark.usefixtures("unloaded")
def test_a_function_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is another one lacks them."""
    monkeypatch.setattr(
        librdkafka, "_library_names", lambda: iter([ctypes.util.find_library("c") or ""])
    )
    with pytest.raises(LibraryUnusableError, match="rd_kafka_consume_batch_queue"):
        load()


@pytest.mark.usefixtures("unloaded")
def test_a_library_that_is_too_old_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is needed and what was found are both named."""
    monkeypatch.setattr(librdkafka, "OLDEST", (255, 0, 0))
    found = confluent_kafka.libversion()[0]
    with pytest.raises(LibraryUnusableError, match=f"librdkafka 255.0.0 or later, and not {found}"):
        load()


def test_doing_without_the_library_is_said_once(
    options: SourceOptions, caplog: pytest.LogCaptureFixture
) -> None:
    """One line of a process says what is missing and what it costs, for all reads."""
    record_reader._warn_once.cache_clear()

    def library() -> ctypes.CDLL:
        raise LibraryUnusableError("the moon")

    with caplog.at_level(logging.WARNING, logger="pyspark_kafka"):
        for _ in range(2):
            reader = ConfluentRecordReader(options, library)
            reader.read(OffsetRange(TopicPartition("t", 0), 0, 1), ALL_COLUMNS)
            reader.close()
    [line] = [
        record.getMessage() for record in caplog.records if record.name == record_reader.__name__
    ]
    assert "reads at a fifth of its rate" in line
    assert "the moon" in line
