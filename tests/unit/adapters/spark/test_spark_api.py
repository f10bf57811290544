"""Features of the running Spark that are looked up, and refusals where one is missing."""

import subprocess
import sys
from contextlib import nullcontext
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from pyspark_kafka.adapters.spark import session as sessions
from pyspark_kafka.adapters.spark import spark_api
from pyspark_kafka.adapters.spark.data_source import KafkaDataSource
from pyspark_kafka.adapters.spark.lag_listener import LagListener
from pyspark_kafka.adapters.spark.schema import spark_schema
from pyspark_kafka.adapters.spark.session import register_source
from pyspark_kafka.adapters.spark.spark_api import LATEST_OFFSET, READ_LIMITS, REGISTRATION
from pyspark_kafka.adapters.spark.stream_reader import OlderStreamReader
from pyspark_kafka.bootstrap.spark import DefaultSource
from pyspark_kafka.domain.errors import UnsupportedFeatureError
from pyspark_kafka.domain.reading.records import ALL_COLUMNS

SCHEMA = spark_schema(ALL_COLUMNS)
OLDER = """
from pyspark import util
from pyspark.sql import datasource as api

for owner, name in (
    (api.DataSourceStreamReader, "getDefaultReadLimit"),
    (api, "DataSourceStreamArrowWriter"),
):
    if hasattr(owner, name):
        delattr(owner, name)
util.local_connect_and_auth = lambda port, auth_secret: None

from pyspark_kafka.adapters.spark import batch_reader, sink_writers, spark_api
from pyspark_kafka.adapters.spark.session import TUNED_DEFAULTS
from pyspark_kafka.adapters.spark.stream_reader import OlderStreamReader, stream_reader_class

assert not (spark_api.HAS_READ_LIMITS or spark_api.HAS_UNIX_SOCKETS)
assert issubclass(sink_writers.KafkaStreamWriter, api.DataSourceStreamWriter)
assert issubclass(sink_writers.KafkaStreamWriter, api.DataSourceArrowWriter)
assert list(TUNED_DEFAULTS) == ["spark.buffer.size"]
assert stream_reader_class() is OlderStreamReader
assert issubclass(batch_reader.KafkaBatchReader, api.DataSourceReader)
"""
"""Parts that Spark 4.0 lacks are taken from the installed one."""


@pytest.fixture
def older(monkeypatch):
    """Let the running Spark have nothing that 4.0 lacks."""
    monkeypatch.setattr(spark_api, "HAS_READ_LIMITS", False)
    for module in ("lag_listener", "stream_reader"):
        monkeypatch.setattr(f"pyspark_kafka.adapters.spark.{module}.HAS_READ_LIMITS", False)


def source(**options: str) -> KafkaDataSource:
    given = {"kafka.bootstrap.servers": "memory", "client": "memory", "subscribe": "t"}
    return DefaultSource({**given, **options})


def test_features_are_asked_for_not_versions():
    subprocess.run([sys.executable, "-W", "ignore", "-c", OLDER], check=True)


@pytest.mark.usefixtures("older")
@pytest.mark.parametrize(
    "limit", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger"]
)
def test_limits_are_refused_without_a_trigger(limit):
    with pytest.raises(UnsupportedFeatureError, match=r"Spark 4\.2 or newer can") as refusal:
        source(**{limit: "3"}).streamReader(SCHEMA)
    assert str(refusal.value) == str(READ_LIMITS.refusal())
    assert "'allowLimitsWithoutTrigger' to 'true'" in str(refusal.value)
    allowed = source(**{limit: "3"}, allowLimitsWithoutTrigger="true")
    assert isinstance(allowed.streamReader(SCHEMA), OlderStreamReader)
    assert isinstance(source().streamReader(SCHEMA), OlderStreamReader)
    source(**{limit: "3"}).reader(SCHEMA)


class KeepsFoundSources:
    """A session of Spark 4.0, which refuses a source that it has found by its name."""

    dataSource = property(lambda self: self)  # noqa: N815

    def register(self, _source: object) -> None:
        error = AnalysisException("refused")
        error._errorClass = self.condition
        raise error

    condition = "DATA_SOURCE_ALREADY_EXISTS"


def test_lists_of_options_are_not_dropped(monkeypatch):
    """Only what a registration would add to a source that Spark has found is refused."""
    session: Any = KeepsFoundSources()
    monkeypatch.setattr(sessions, "hide_secrets_of_statements", lambda _: None)
    register_source(session, DefaultSource, {})
    monkeypatch.setattr(sessions, "is_classic", lambda _: True)
    monkeypatch.setattr(sessions, "hide_secrets", lambda _: None)
    monkeypatch.setattr(sessions, "worker_variables", lambda *_: nullcontext())
    register_source(session, DefaultSource, {})
    with pytest.raises(UnsupportedFeatureError, match=r"Spark 4\.1 or newer can") as refusal:
        register_source(session, DefaultSource, {"A": "b"})
    assert str(refusal.value) == str(REGISTRATION.refusal())
    session.condition = "DATA_SOURCE_NOT_FOUND"
    with pytest.raises(AnalysisException):
        register_source(session, DefaultSource, {})


@pytest.mark.usefixtures("older")
def test_lag_without_latest_offsets_is_not_invented(caplog):
    LagListener(()).close()
    assert [record.getMessage() for record in caplog.records] == [str(LATEST_OFFSET.refusal())]
