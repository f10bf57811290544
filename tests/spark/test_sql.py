"""SQL statements on this source, and what they are refused with."""

import re

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.documents import ROOT

PAGE = ROOT / "docs" / "guides" / "sql-and-pipelines.md"


@pytest.fixture
def view(spark, kafka, topics, fresh_name):
    topic, name = topics.create(), fresh_name()
    spark.sql(
        f"CREATE TEMPORARY VIEW {name} USING pyspark_kafka OPTIONS ("
        f"kafka.bootstrap.servers '{kafka.bootstrap_servers}',"
        f" subscribe '{topic}', topic '{topic}', includeHeaders 'true')"
    )
    return name


@pytest.mark.parametrize("session", ["spark", "connect"])
def test_the_statements_of_the_page_run(session, request, kafka, topics):
    spark: SparkSession = request.getfixturevalue(session)
    topic = topics.create()
    text = PAGE.read_text().replace("broker:9092", kafka.bootstrap_servers)
    [statements, *_] = re.findall(r"```sql\n(.*?);\n```", text, re.DOTALL)
    *preparing, select = statements.replace("'orders'", f"'{topic}'").split(";")
    try:
        for statement in preparing:
            spark.sql(statement)
        assert spark.sql(select).collect() == [("ada", "coffee"), (None, "tea")]
    finally:
        spark.catalog.dropTempView("orders")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO {view} SELECT binary('a'), binary('b')", "NOT_ENOUGH_DATA_COLUMNS"),
        ("INSERT INTO {view} (value) VALUES ('tea')", "CANNOT_SAFELY_CAST"),
        ("INSERT OVERWRITE {view} (value) VALUES (binary('tea'))", "KAFKA_SAVE_MODE"),
        ("TRUNCATE TABLE {view}", "EXPECT_TABLE_NOT_VIEW"),
        ("SELECT * FROM STREAM({view})", "is not a temp view of streaming logical plan"),
    ],
)
def test_other_statements_are_refused(spark, view, statement, message):
    with pytest.raises(AnalysisException, match=message):
        spark.sql(statement.format(view=view))
    assert spark.table(view).isEmpty()


def test_a_streaming_view_is_used_in_sql(spark, kafka, topics, fresh_name):
    name = fresh_name()
    stream = spark.readStream.format("pyspark_kafka").options(**kafka.options)
    stream.option("subscribe", topics.create()).load().createTempView(name)
    assert spark.table(name).isStreaming


def test_a_table_of_the_catalog_is_refused_with_what_to_do(spark, kafka, fresh_name):
    """Spark would lose the options of such a table when it reads it."""
    with pytest.raises(AnalysisException, match="CREATE TEMPORARY VIEW") as error:
        spark.sql(
            f"CREATE TABLE {fresh_name()} USING pyspark_kafka OPTIONS ("
            f"kafka.bootstrap.servers '{kafka.bootstrap_servers}', subscribe 'orders')"
        )
    assert "[KAFKA_CATALOG_TABLE]" in str(error.value)
