"""A real Spark Connect server: what works with this source, and docs/deploy/spark-connect.md."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import pyspark_kafka
from pyspark_kafka import continuous
from pyspark_kafka.adapters.spark.session import TUNED_DEFAULTS
from pyspark_kafka.adapters.spark.spark_api import HAS_READ_LIMITS
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.errors import OptionsError

from ..servers.spark_connect import DISALLOWED, SPARK_ALLOWED, SPARK_DISALLOWED
from .queries import OURS, read, read_stream

PROGRAM = Path(__file__).parent / "programs" / "connect_sessions.py"


def values(spark: SparkSession, kafka: KafkaCluster, topic: str) -> list[bytes]:
    options = {"subscribe": topic, "kafka__isolation__level": "read_committed"}
    rows = read(spark, kafka, OURS, **options).select("value").collect()
    return sorted(bytes(row.value) for row in rows)


def append(rows: DataFrame, kafka: KafkaCluster, topic: str) -> None:
    rows.write.format(OURS).options(**kafka.options, topic=topic).mode("append").save()


def test_batches_are_written_from_any_thread_and_read(connect, kafka, topics):
    topic = topics.create()
    frames = [connect.sql(f"select binary('{number}') value") for number in range(2)]
    activate = pyspark_kafka.set_active_session
    with ThreadPoolExecutor(2, initializer=activate, initargs=(connect,)) as pool:
        for written in [pool.submit(append, frame, kafka, topic) for frame in frames]:
            written.result()
    assert values(connect, kafka, topic) == [b"0", b"1"]


def test_a_stream_writes_exactly_once_and_reports_its_lag(connect, kafka, topics, tmp_path):
    source, target = topics.create(), topics.create()
    topics.numbers(source, 0, range(9))
    limit = {"maxOffsetsPerTrigger": "5"} if HAS_READ_LIMITS else {}
    stream = read_stream(
        connect, kafka, OURS, subscribe=source, startingOffsets="earliest", **limit
    )
    sink = {"topic": target, "deliveryGuarantee": "exactly-once", "transactionalIdPrefix": target}
    measured = None if HAS_READ_LIMITS else kafka.options
    with pyspark_kafka.lag_listener(source_options=measured) as listener:
        connect.streams.addListener(listener)
        query = (
            stream.select("key", "value")
            .writeStream.format(OURS)
            .options(**kafka.options, **sink)
            .option("checkpointLocation", str(tmp_path))
            .queryName(source)
            .trigger(availableNow=True)
            .start()
        )
        lags = list(listener.lags(query, 60))
        connect.streams.removeListener(listener)
    assert query.exception() is None
    expected = [(source, 4), (source, 0)] if HAS_READ_LIMITS else [(source, 0)]
    assert [(lag.name, lag.lag.total) for lag in lags] == expected
    assert values(connect, kafka, target) == [b"%d" % number for number in range(9)]


def test_a_continuous_query_uses_files_for_its_tasks(connect, kafka, topics, tmp_path, monkeypatch):
    # Functions of columns are then Connect's, as in a process without another Spark.
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    source, target = topics.create(), topics.create()
    topics.numbers(source, 0, range(3))
    given: dict[str, Any] = {
        "source": {**kafka.options, "subscribe": source, "startingOffsets": "earliest"},
        "sink": {**kafka.options, "topic": target},
        "checkpointLocation": str(tmp_path / "checkpoint"),
    }

    def copied(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.select(["key", "value"])

    with pytest.raises(OptionsError, match="channel 'socket' needs a classic session"):
        continuous.start(connect, copied, channel="socket", **given)
    query = continuous.start(connect, copied, **given)
    query.processAllAvailable()
    query.stop()
    assert values(connect, kafka, target) == [b"0", b"1", b"2"]


def test_only_the_environment_of_the_server_forbids_options(connect, kafka, topics):
    """A registration passes Spark's lists to no worker; the variable of the server applies."""
    topic = topics.create()
    topics.numbers(topic, 0, range(1))
    pyspark_kafka.register(connect)
    listed = {f"kafka.{SPARK_DISALLOWED}": "1"}
    assert read(connect, kafka, OURS, subscribe=topic, **listed).count() == 1
    # ``load`` asks the server for nothing yet.
    forbidden = read(connect, kafka, OURS, subscribe=topic, **{f"kafka.{DISALLOWED}": "a"})
    with pytest.raises(AnalysisException, match=f"'kafka.{DISALLOWED}' is not allowed"):
        forbidden.count()
    unlisted = read(connect, kafka, OURS, subscribe=topic, **{f"kafka.{SPARK_ALLOWED}": "a"})
    with pytest.raises(AnalysisException, match=f"'kafka.{SPARK_ALLOWED}' is refused"):
        unlisted.count()


SECRET = "canary-6f1c"  # noqa: S105
SECRETS = {
    "kafka.sasl.password": SECRET,
    "kafka.sasl.jaas.config": f'M required username="u" password="{SECRET}";',
    "kafka.ssl.keystore.key": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n",
    "kafka.ssl.keystore.location": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n",
    "schema.registry.url": f"http://me:{SECRET}@127.0.0.1:1",
    "metadataPath": f"s3://AKIA:ab/{SECRET}@bucket/x",
    "metadataStorageOptions": f'{{"key": "{SECRET}"}}',
}


def test_the_event_log_shows_no_secret(connect):
    pyspark_kafka.register(connect)
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "seen-1", **SECRETS}
    listed = ", ".join(f"`{name}` '{value}'" for name, value in options.items())
    statements: tuple[Callable[[], object], ...] = (
        lambda: connect.read.format(OURS).options(**options).load().collect(),
        lambda: connect.range(1).write.format(OURS).options(**options).mode("append").save(),
        lambda: connect.sql(f"CREATE TEMPORARY VIEW seen_2 USING {OURS} OPTIONS ({listed})"),
    )
    for statement in statements:
        with pytest.raises(AnalysisException):
            statement()
    logs = Path(urlsplit(connect.conf.get("spark.eventLog.dir") or "").path)
    events = ""
    for _ in range(100):
        # Events are written in order, and a little later.
        connect.sql("select 'seen-3'").collect()
        events = "".join(path.read_text() for path in logs.rglob("events_*"))
        if "seen-3" in events:
            break
    assert "seen-1" in events
    assert "seen-3" in events
    assert SECRET not in events


@pytest.fixture(scope="module")
def sessions(connect_url):
    ran = subprocess.run(
        [sys.executable, PROGRAM, connect_url],
        capture_output=True,
        text=True,
        check=True,
        # An ephemeral port for the local server.
        env={**os.environ, "SPARK_TESTING": "yes"},
    )
    return json.loads(ran.stdout.splitlines()[-1])


def test_a_session_names_the_settings_that_its_server_lacks(sessions):
    lacking = ", ".join(sorted(TUNED_DEFAULTS))
    assert sessions["remote"] == {
        "redacts": True,
        "warnings": [f"The Spark Connect server lacks {lacking}"],
        "same": True,
    }


def test_a_local_connect_server_has_all_settings(sessions):
    assert sessions["local"] == {
        "redacts": True,
        "warnings": [],
        "same": True,
        "buffer": "1048576",
        "daemon": "pyspark_kafka.bootstrap.worker_daemon",
    }
