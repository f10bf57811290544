"""Typed values in Spark: their schema, the modes, streams and restarts."""

import json
from collections.abc import Sequence
from typing import Any, Final

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as spark_types
from pyspark.sql.pandas.types import to_arrow_schema

from pyspark_kafka.adapters.spark.schema import requested_type, spark_type, typed_spark_schema
from pyspark_kafka.adapters.values.framing.wire_format import id_prefix
from pyspark_kafka.adapters.values.registry.http_registry import HttpSchemaRegistry
from pyspark_kafka.bootstrap.spark import range_frames
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.data_types import StructType, parse_struct
from pyspark_kafka.domain.values.registry import (
    RegistryOptions,
    Schema,
    SchemaType,
    registry_settings,
)
from pyspark_kafka.domain.values.typed_schema import TypedColumn, typed_schema
from pyspark_kafka.domain.values.value_options import ValueOptions
from pyspark_kafka.ports.values.value_types import typed_record_schema

from ..unit.domain.values.strategies import struct_types
from .queries import OURS, PEER, assert_same_rows, read, read_stream, run_available_now
from .topics import Topics

JSON: Final = {"valueFormat": "json", "valueSchema": "id bigint, user string"}
ADA: Final = b'{"id":1,"user":"ada"}'
BAD: Final = b'{"id":"x","user":"eve"}'
BOB: Final = b'{"id":2,"user":"bob"}'

ALL_TYPES: Final = (
    "a boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h string, i binary, "
    "j date, k timestamp, l timestamp_ntz, m decimal(10,2), "
    "n array<struct<o:int,p:array<string>>>, q map<string,struct<r:bigint>>, "
    "s struct<t:struct<u:date>>"
)
ALL_VALUES: Final = json.dumps(
    {
        "a": True,
        "b": 1,
        "c": 2,
        "d": 3,
        "e": 4,
        "f": 0.5,
        "g": 0.25,
        "h": "ü",
        "i": "YWI=",
        "j": "2024-02-29",
        "k": "2024-02-29T12:00:00.123456Z",
        "l": "2024-02-29T12:00:00",
        "m": 12.345,
        "n": [{"o": 1, "p": ["x", None]}, None],
        "q": {"one": {"r": 5}, "none": None},
        "s": {"t": {"u": "1999-12-31"}},
    }
).encode()


def rows(table: DataFrame) -> list[Any]:
    return [tuple(row) for row in table.orderBy("offset").collect()]


def malformed(topic: str) -> str:
    """Return how the error begins of a topic's bad record."""
    return (
        f"[KAFKA_MALFORMED_VALUE] The value of the record at offset 1 of {topic}-0 cannot be "
        "decoded: it has another type than the schema (field 'id'). To keep reading, set"
    )


def typed_of(struct: StructType) -> Any:
    return typed_schema(ALL_COLUMNS, [TypedColumn(ValueOptions("value", "json"), struct)])


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(struct_types)
def test_the_arrow_schema_is_sparks(struct):
    """Spark refuses a first batch whose schema differs in any detail, nullability included."""
    schema = typed_of(struct)
    expected = to_arrow_schema(typed_spark_schema(schema), timezone="UTC")
    assert typed_record_schema(schema).equals(expected)
    assert requested_type(typed_spark_schema(schema)).fields[1].type == struct


@pytest.mark.parametrize(
    "text",
    [
        ALL_TYPES,
        "a INT NOT NULL COMMENT 'it\\'s', `b c` dec, d: real, e numeric(5), f timestamp_ltz",
        "struct struct<struct:byte>, comment short, a array<map<string,array<integer>>>",
        "a interval day to second, b long",
        "struct<a:int>",
    ],
)
def test_ddl_is_parsed_as_by_spark(spark, text):
    assert spark is not None  # PySpark's parser needs its JVM
    theirs = spark_types._parse_datatype_string(text)
    ours = spark_type(parse_struct(text))
    assert ours.simpleString() == theirs.simpleString()


@pytest.mark.parametrize("text", ["a int b int", "1 int", "a map<int>", "a strin", "a int,"])
def test_ddl_that_spark_refuses(spark, text):
    assert spark is not None
    with pytest.raises(PySparkException):
        spark_types._parse_datatype_string(text)
    with pytest.raises(ValueError, match=r"schema|type"):
        parse_struct(text)


def test_types_that_values_cannot_have():
    schema = spark_types.StructType(
        [
            spark_types.StructField("a", spark_types.IntegerType(), nullable=False),
            spark_types.StructField("b", spark_types.VariantType()),
            spark_types.StructField("c", spark_types.ArrayType(spark_types.LongType(), False)),
            spark_types.StructField(
                "d",
                spark_types.MapType(
                    spark_types.StringType(), spark_types.YearMonthIntervalType(), False
                ),
            ),
        ]
    )
    with pytest.raises(OptionsError) as caught:
        requested_type(schema)
    assert caught.value.problems == (
        "the schema's field 'a' must be nullable: remove NOT NULL",
        "the schema's field 'b variant' is not supported",
        "the schema's field 'c' must be nullable: remove NOT NULL",
        "the schema's field 'd' must be nullable: remove NOT NULL",
        "the schema's field 'd.value interval year to month' is not supported",
    )


@pytest.mark.parametrize(
    "formats",
    [
        {},
        {
            "dateFormat": "dd/MM/yyyy",
            "timestampFormat": "dd.MM.yyyy HH:mm XXX",
            "timestampNTZFormat": "yyyyMMddHHmm",
        },
    ],
    ids=["defaults", "patterns"],
)
def test_json_is_read_as_from_json_reads_it(spark, kafka, topics, formats):
    topic = topics.create()
    in_patterns = b'{"j":"31/12/2019","k":"31.12.2019 23:59 +02:00","l":"201912312359"}'
    topics.values(topic, [ALL_VALUES, b"{}", None, b'{"d":1,"h":2}', in_patterns])
    options = {"valueFormat": "json", "valueSchema": ALL_TYPES, "mode": "PERMISSIVE", **formats}
    ours = read(spark, kafka, OURS, subscribe=topic, **options)
    theirs = read(spark, kafka, PEER, subscribe=topic).withColumn(
        "value", sf.from_json(sf.col("value").cast("string"), ALL_TYPES, formats)
    )
    times = ours.select("value.j", "value.k", "value.l").dropna()
    assert times.count() == 1
    # Tables with maps cannot be compared by exceptAll.
    as_json = sf.col("value").isNull().alias("n"), sf.to_json("value").alias("v"), "offset"
    assert ours.schema["value"].dataType == theirs.schema["value"].dataType
    assert_same_rows(ours.select(*as_json), theirs.select(*as_json))


def test_bad_records(spark, kafka, topics):
    topic = topics.create()
    topics.values(topic, [ADA, BAD, BOB], key=b"k")

    with pytest.raises(PySparkException) as caught:
        read(spark, kafka, OURS, subscribe=topic, **JSON).collect()
    assert malformed(topic) in str(caught.value)

    kept = read(spark, kafka, OURS, subscribe=topic, includeErrors="true", **JSON)
    assert kept.columns[:5] == ["key", "value", "valueError", "valueBytes", "topic"]
    assert rows(kept.select("offset", "value.user", "valueError", "valueBytes")) == [
        (0, "ada", None, None),
        (1, "eve", "it has another type than the schema (field 'id')", BAD),
        (2, "bob", None, None),
    ]

    flat = {**JSON, "mode": "DROPMALFORMED", "flattenValue": "true"}
    dropped = read(spark, kafka, OURS, subscribe=topic, **flat)
    assert dropped.columns[:4] == ["key", "id", "user", "topic"]
    assert rows(dropped.select("offset", "id", "user")) == [(0, 1, "ada"), (2, 2, "bob")]


def test_a_users_schema(spark, kafka, topics):
    topic = topics.create()
    topics.values(topic, [ADA, None])
    reader = spark.read.format(OURS).options(subscribe=topic, valueFormat="json", **kafka.options)
    table = reader.schema("offset long, value struct<user: string>").load()
    assert rows(table) == [(0, ("ada",)), (1, None)]

    wrong = reader.options(**JSON).schema("offset long, value struct<id: int, user: string>")
    with pytest.raises(PySparkException, match=r"'value\.id int' has the type bigint"):
        wrong.load().collect()


def avro(*fields: str) -> str:
    members = [{"name": name, "type": ["null", "string"], "default": None} for name in fields]
    return json.dumps({"type": "record", "name": "Order", "fields": members})


class Registry:
    """A real registry, and records with its ids."""

    def __init__(self, url: str, topics: Topics) -> None:
        self.url = url
        self._client = HttpSchemaRegistry(registry_settings(RegistryOptions(url)))
        self._topics = topics

    def write(self, topic: str, schema: str, records: Sequence[dict[str, str]]) -> None:
        import io

        number = self._client.register(f"{topic}-value", Schema(SchemaType.AVRO, schema))
        values = []
        for record in records:
            buffer = io.BytesIO()
            fastavro.schemaless_writer(buffer, json.loads(schema), record)
            values.append(id_prefix(number) + buffer.getvalue())
        self._topics.values(topic, values)


def test_a_restart_reads_with_the_schema_of_the_first_start(
    spark, kafka, topics, schema_registry, tmp_path
):
    topic, registry = topics.create(), Registry(schema_registry, topics)
    registry.write(topic, avro("user"), [{"user": "ada"}])
    options = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "valueFormat": "avro",
        "schema__registry__url": schema_registry,
    }
    log = {"metadataPath": str(tmp_path / "metadata")}

    def run(number: int) -> list[Any]:
        stream = read_stream(spark, kafka, OURS, **options, **log)
        output = run_available_now(stream.select("offset", "value.*"), tmp_path / str(number))
        return rows(output)

    assert run(1) == [(0, "ada")]
    registry.write(topic, avro("user", "drink"), [{"user": "bob", "drink": "tea"}])
    assert run(2) == [(0, "ada"), (1, "bob")]
    newer = read(spark, kafka, OURS, **options, **log, valueSchemaVersion="2")
    assert rows(newer.select("offset", "value.*")) == [(0, "ada", None), (1, "bob", "tea")]
    batch = read(spark, kafka, OURS, **{**options, "onNewSchema": "fail"}, valueSchemaVersion="1")
    with pytest.raises(PySparkException, match=r"\[KAFKA_NEW_SCHEMA\] .* offset 1 of"):
        batch.collect()


def test_the_legacy_source(spark, kafka, topics):
    topic = topics.create()
    topics.values(topic, [ADA, BOB])
    given = {**kafka.options, "subscribe": topic, "includeKey": "false", **JSON}
    options = parse_source_options(given, QueryKind.STREAM)
    frame = range_frames(spark, options)([OffsetRange(TopicPartition(topic, 0), 0, 2)])
    assert frame.columns[:2] == ["value", "topic"]
    assert rows(frame.select("offset", "value.id", "value.user")) == [(0, 1, "ada"), (1, 2, "bob")]
