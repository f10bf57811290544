from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pyspark_kafka.bootstrap.container import Container, container_for
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options

from ..spark.queries import PEER
from .jvm_connector import JvmConnector
from .live_queries import Live
from .peer import Held

if TYPE_CHECKING:
    from collections.abc import Callable


class OpenContainer(Protocol):
    """Gives a container for a query, by its options without the broker and the client."""

    def __call__(self, query: QueryKind, **options: str) -> Container: ...


@pytest.fixture(autouse=True)
def held_as_marked(request, monkeypatch):
    """Fail a test that is not held in the way that it is marked with."""
    ways = {mark.args[2] for mark in request.node.iter_markers("peer")}
    if ways & {Held.BESIDE_JVM, Held.SPARK}:
        assert "spark" in request.fixturenames
    if Held.BESIDE_JVM not in ways or "jvm" in request.fixturenames:
        yield
        return
    used = _record_formats(monkeypatch)
    yield
    assert PEER in used, "the test did not use the JVM connector"


def _record_formats(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the set to which the formats of Spark's readers and writers are added from now on."""
    from pyspark.sql import DataFrameReader, DataFrameWriter
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

    used: set[str] = set()

    def recording(original: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        def format_of(self: Any, source: str) -> Any:
            used.add(source)
            return original(self, source)

        return format_of

    for kind in (DataFrameReader, DataFrameWriter, DataStreamReader, DataStreamWriter):
        monkeypatch.setattr(kind, "format", recording(kind.format))
    return used


@pytest.fixture(scope="session")
def jvm(spark):
    return JvmConnector(spark)


@pytest.fixture
def open_container(world):
    made: list[Container] = []

    def opened(query: QueryKind, **options: str) -> Container:
        given = {**world.addresses, "client": world.client, **options}
        made.append(container_for(parse_source_options(given, query)))
        return made[-1]

    yield opened
    for container in made:
        container.shutdown_resources()


@pytest.fixture
def live(spark, kafka, tmp_path):
    made = Live(spark, kafka, tmp_path)
    yield made
    made.close()
