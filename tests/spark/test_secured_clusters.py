"""Every login, with both clients, in all that a Spark query does."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_kafka.bootstrap.tools import lag_monitor_for
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.security.policy import UNRESTRICTED
from tests.servers.secured import MECHANISMS

from .queries import OURS
from .secured_matrix import CLIENTS, OPERATIONS, refusal

ROWS = 20

IN_ORDER = ("sink", "batch", "stream", "exactly-once", "lag")
"""The rows of the first are read by the others, and lag is measured for the stream."""


class SecuredQueries:
    """Queries by one login; each returns how many rows there are after it."""

    def __init__(
        self, spark: SparkSession, options: dict[str, str], directory: Path, topics: list[str]
    ) -> None:
        self._spark = spark
        self._options = options
        self._directory = directory
        self._origin, self._copy = topics

    def run(self, operation: str) -> int:
        return {
            "batch": self._batch,
            "stream": self._stream,
            "sink": self._sink,
            "exactly-once": self._exactly_once,
            "lag": self._lag,
        }[operation]()

    def _sink(self) -> int:
        table = self._spark.range(ROWS).selectExpr("cast(id as string) as value").coalesce(1)
        write = table.write.format(OURS).options(**self._options)
        write.option("topic", self._origin).mode("append").save()
        return ROWS

    def _batch(self) -> int:
        return self._read(self._origin).count()

    def _stream(self) -> int:
        read: list[int] = []
        stream = self._open_stream().writeStream.foreachBatch(
            lambda batch, _number: read.append(batch.count())
        )
        self._run(stream.option("checkpointLocation", str(self._directory / "stream")))
        return sum(read)

    def _exactly_once(self) -> int:
        stream = self._open_stream().select("value").writeStream.format(OURS)
        stream = stream.options(**self._options, topic=self._copy)
        stream = stream.option("deliveryGuarantee", "exactly-once")
        self._run(stream.option("checkpointLocation", str(self._directory / "once")))
        return self._read(self._copy, **{"kafka.isolation.level": "read_committed"}).count()

    def _lag(self) -> int:
        given = self._options | {"subscribe": self._origin}
        options = parse_source_options(given, QueryKind.STREAM, UNRESTRICTED)
        checkpoint = StoragePath(str(self._directory / "stream"))
        with lag_monitor_for(options, checkpoint, 1_000) as monitor:
            return ROWS - monitor.snapshot().total

    def _read(self, topic: str, **more: str) -> DataFrame:
        given = self._options | {"subscribe": topic} | more
        return self._spark.read.format(OURS).options(**given).load()

    def _open_stream(self) -> DataFrame:
        given = self._options | {"subscribe": self._origin, "startingOffsets": "earliest"}
        return self._spark.readStream.format(OURS).options(**given).load()

    @staticmethod
    def _run(stream: object) -> None:
        query = stream.trigger(availableNow=True).start()  # type: ignore[attr-defined]
        assert query.awaitTermination(60)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_login(spark, secured, fresh_name, tmp_path, mechanism, client):
    assert set(IN_ORDER) == set(OPERATIONS)
    topics = [fresh_name(), fresh_name()]
    for topic in topics:
        secured.cluster.create_topic(topic)
    options = secured.options(mechanism, client=client)
    queries = SecuredQueries(spark, options, tmp_path, topics)
    for operation in IN_ORDER:
        words = refusal(mechanism, client, operation)
        if words is None and mechanism == "GSSAPI" and find_spec("gssapi") is None:
            # There is no wheel for Linux, and some machines cannot build one.
            words = "pip install 'pyspark-kafka[kerberos]'"
        if words is None:
            assert queries.run(operation) == ROWS, operation
            continue
        with pytest.raises(Exception, match="KAFKA_INVALID_OPTIONS") as refused:
            queries.run(operation)
        assert words in str(refused.value), operation
