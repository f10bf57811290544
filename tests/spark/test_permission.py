"""Options of queries that the operator of Spark allows, by every way to set them."""

import _ctypes_test  # type: ignore[import-not-found]
from collections.abc import Mapping
from typing import Final

import pytest
from pyspark.sql import SparkSession

from pyspark_kafka.adapters.spark.data_source import KafkaDataSource
from pyspark_kafka.adapters.spark.session import register_source
from pyspark_kafka.bootstrap.spark import ContainerUseCases
from pyspark_kafka.domain.security.policy import RESTRICTED, AllowList

LIBRARY: Final = str(_ctypes_test.__file__)
QUERY: Final = {"kafka.bootstrap.servers": "127.0.0.1:1", "client": "confluent", "subscribe": "t"}
VALUES: Final = {
    "partitioner.class": "os:system",
    "sasl.client.callback.handler.class": "os:getcwd",
    "sasl.login.callback.handler.class": "os:getcwd",
    "sasl.oauthbearer.token.endpoint.url": "https://idp.example/token",
}
DANGEROUS: Final = {
    **{f"kafka.{setting.name}": VALUES.get(setting.name, LIBRARY) for setting in RESTRICTED},
    "kafka.enabled_events": "1",
}


class OperatedSource(KafkaDataSource):
    """The data source under another name, so that a session can have it with an environment."""

    use_cases = ContainerUseCases()

    @classmethod
    def name(cls) -> str:
        return "kafka_with_permission"


def operated(spark: SparkSession, **lists: str) -> str:
    variables = {entries.variable: lists.get(entries.name, "") for entries in AllowList}
    register_source(spark, OperatedSource, variables)
    return OperatedSource.name()


def read(spark: SparkSession, source: str, options: Mapping[str, str]) -> None:
    spark.read.format(source).options(**options).load().collect()


def select(spark: SparkSession, source: str, options: Mapping[str, str]) -> None:
    given = ", ".join(f"'{name}' '{value}'" for name, value in options.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW dangerous USING {source} OPTIONS ({given})")
    spark.sql("SELECT * FROM dangerous").collect()


def write(spark: SparkSession, source: str, options: Mapping[str, str]) -> None:
    values = spark.range(1).selectExpr("'x' as value")
    values.write.format(source).options(**options).option("topic", "t").mode("append").save()


@pytest.mark.parametrize("way", [read, select, write])
def test_no_query_does_more_than_to_read_and_write(spark, way):
    with pytest.raises(Exception, match=f"{len(DANGEROUS)} options cannot be used") as caught:
        way(spark, operated(spark), QUERY | DANGEROUS)
    for name in DANGEROUS:
        assert f"'{name}' is " in str(caught.value)
    assert "Ask the operator of Spark" in str(caught.value)


@pytest.mark.parametrize("way", [read, select])
def test_a_query_does_what_is_allowed(spark, way):
    given = QUERY | {"kafka.plugin.library.paths": LIBRARY}
    with pytest.raises(Exception, match="undefined symbol: conf_init"):
        way(spark, operated(spark, FILES=LIBRARY), given)
