"""Values of Spark's functions are read, and ours are read by them, also of schemas that change."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.functions import col, from_json, to_json

from pyspark_kafka.ports.values.value_types import data_type_of
from tests.integration.serializer_matrix import OURS, SPARK
from tests.servers.confluent_registry import ConfluentRegistry
from tests.servers.http_server import serving

pytest.importorskip("authlib", reason="confluent-kafka needs its extra schemaregistry")

from tests.integration.serializers import (
    CASES,
    CHANGES,
    Case,
    Framed,
    Peer,
    comparable,
    native_row,
    our_column,
)

ID_BYTES = 5


@pytest.fixture
def url():
    with serving(ConfluentRegistry().respond) as url:
        yield url


def written(spark: SparkSession, case: Case, rows: Sequence[Any]) -> list[bytes]:
    """Return rows as ``to_avro`` or ``to_json`` writes them."""
    column = our_column(case, rows)
    schema = f"value {data_type_of(column.type)}"
    frame = spark.createDataFrame(pa.table({"value": column}), schema)
    value = to_avro("value", case.schema) if case.form == "avro" else to_json("value")
    return [row.value for row in frame.select(value.cast("binary").alias("value")).collect()]


def read(spark: SparkSession, case: Case, writer: Case, values: Sequence[Framed]) -> list[Any]:
    """Return the rows that ``from_avro`` or ``from_json`` reads behind the ids."""
    plain = [bytes(value or b"")[ID_BYTES:] for value, _ in values]
    frame = spark.createDataFrame(pa.table({"value": pa.array(plain, pa.binary())}))
    if case.form == "avro":
        value = from_avro("value", writer.schema, {"avroSchema": case.schema})
    else:
        value = from_json(col("value").cast("string"), case.ddl)
    found = frame.select(value).toArrow().column(0).to_pylist()
    return [native_row(case, row) for row in found]


@pytest.mark.parametrize("form", SPARK)
def test_values_are_read_as_they_were_written(spark, form, url):
    case = CASES[form]
    ours = Peer(OURS, case, url, "orders", "confluent")
    values = ours.write(case.native)
    assert comparable(read(spark, case, case, values)) == comparable(list(case.native))
    prefix = bytes(values[0][0] or b"")[:ID_BYTES]
    by_spark: list[Framed] = [(prefix + one, []) for one in written(spark, case, case.native)]
    assert comparable(ours.read(by_spark)) == comparable(list(case.native))


@pytest.mark.parametrize("form", SPARK)
def test_schemas_that_change(spark, form, url):
    """Fields are added, removed and reordered; readers have the older or the newer schema."""
    change = CHANGES[form]
    ways = (
        (change.old, change.new, change.old_as_new),
        (change.new, change.old, change.new_as_old),
    )
    prefixes = [
        bytes(Peer(OURS, one, url, "orders", "confluent").write(one.native)[0][0] or b"")[:ID_BYTES]
        for one, _, _ in ways
    ]
    for (writer, reader, wanted), prefix in zip(ways, prefixes, strict=True):
        values = Peer(OURS, writer, url, "orders", "confluent").write(writer.native)
        assert comparable(read(spark, reader, writer, values)) == comparable(list(wanted))
        by_spark: list[Framed] = [
            (prefix + one, []) for one in written(spark, writer, writer.native)
        ]
        ours = Peer(OURS, reader, url, "orders", "confluent").read(by_spark)
        assert comparable(ours) == comparable(list(wanted))
