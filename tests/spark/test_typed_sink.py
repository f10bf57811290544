"""Writing struct columns with Spark."""

import json
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_kafka import continuous

from .queries import OURS, read
from .sinks import Sinks, refusal

FIELDS = (
    "id, cast(id as string) name, id / 4 ratio, timestamp_seconds(id) at, array(id, null) ids, "
    "if(id % 2 = 0, null, named_struct('x', id)) inner"
)


@pytest.fixture
def one_client(spark, kafka, tmp_path):
    return Sinks(spark, kafka, "kafka-python", tmp_path)


def rows(spark: SparkSession, count: int = 20) -> DataFrame:
    structs = spark.range(count).selectExpr("struct(id) key", f"struct({FIELDS}) value")
    return structs.selectExpr("key", "value", "to_json(key) json_key", "to_json(value) json")


@pytest.mark.parametrize("query", ["batch", "stream"])
def test_rows_are_written_as_to_json_writes_them(one_client, topics, query):
    topic = topics.create(1)
    table = rows(one_client.spark)
    written = table.select("key", "value")
    if query == "batch":
        one_client.write(written, topic=topic, valueFormat="json", keyFormat="json")
    else:
        one_client.write_stream(written, topic=topic, valueFormat="json", keyFormat="json")
    expected = {(row.json_key.encode(), row.json.encode()) for row in table.collect()}
    assert {(one.key, one.value) for one in one_client.stored(topic)} == expected


def test_a_struct_without_a_format_is_refused(one_client, topics):
    table = rows(one_client.spark).selectExpr("value")
    line = refusal(lambda: one_client.write(table, topic=topics.create(1)))
    assert "value must be a(n) string or binary. To write a struct, set the option" in line


def test_a_type_without_values_is_refused(one_client, topics):
    table = one_client.spark.range(1).selectExpr("struct(null as nothing) value")
    line = refusal(lambda: one_client.write(table, topic=topics.create(1), valueFormat="json"))
    assert "the schema's field 'value.nothing void' is not supported" in line


def test_a_continuous_query_writes_structs(spark, kafka, topics, tmp_path):
    def to_struct(records: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        offsets = records.column("offset")
        value = pa.StructArray.from_arrays([offsets], names=["offset"])
        return pa.RecordBatch.from_arrays([value], names=["value"])

    source, sink = topics.create(1), topics.create(1)
    topics.numbers(source, 0, range(3))
    common = {**kafka.options, "client": "kafka-python"}
    query = continuous.start(
        spark,
        to_struct,
        source={**common, "subscribe": source, "startingOffsets": "earliest"},
        sink={**common, "topic": sink, "valueFormat": "json"},
        checkpointLocation=str(tmp_path / "checkpoint"),
        epoch="200 milliseconds",
        tasks=1,
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    values = read(spark, kafka, OURS, subscribe=sink).select("value").collect()
    assert sorted(row.value for row in values) == [b'{"offset":%d}' % number for number in range(3)]


def require_backward(url: str, subject: str) -> None:
    body = json.dumps({"compatibility": "BACKWARD"}).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(f"{url}/config/{subject}", body, headers, method="PUT")  # noqa: S310
    with urlopen(request, timeout=30) as response:  # noqa: S310  # a server of this run
        assert response.status == 200


def registering(url: str, **options: str) -> dict[str, str]:
    return {"valueFormat": "avro", "schema__registry__url": url, **options}


def test_schemas_are_registered_before_the_first_record(one_client, topics, schema_registry):
    spark, topic = one_client.spark, topics.create(1)
    given = registering(schema_registry, topic=topic)
    one_client.write(spark.range(3).selectExpr("struct(id, 'a' name) value"), **given)
    typed = read(
        spark, one_client.kafka, OURS, subscribe=topic, valueFormat="avro",
        schema__registry__url=schema_registry,
    )  # fmt: skip
    found = typed.selectExpr("value.*").orderBy("id")
    assert [tuple(row) for row in found.collect()] == [(number, "a") for number in range(3)]
    require_backward(schema_registry, f"{topic}-value")
    other = spark.range(3).selectExpr("struct(cast(id as string) id) value")
    line = refusal(lambda: one_client.write(other, **given))
    assert line.startswith("[KAFKA_INCOMPATIBLE_SCHEMA]")
    latest = {**given, "useLatestVersion": "true"}
    line = refusal(lambda: one_client.write(other, **latest))
    assert "field 'id' of type string cannot be written as long" in line
    wider = spark.range(1).selectExpr("struct('b' NAME, cast(7 as int) ID) value")
    one_client.write(wider, **latest)
    assert typed.count() == 4
    assert read(spark, one_client.kafka, OURS, subscribe=topic).count() == 4


def test_rows_are_registered_by_their_topics(one_client, topics, schema_registry, tmp_path):
    spark, (first, second) = one_client.spark, (topics.create(1), topics.create(1))
    file = tmp_path / "key.proto"
    file.write_text('syntax = "proto3";\nmessage Key { int64 id = 1; string name = 2; }\n')
    table = spark.range(1, 11).selectExpr(
        f"if(id < 6, '{first}', '{second}') topic",
        "struct(id, cast(id as string) name) key",
        "struct(id) value",
    )
    framing = {"keyFormat": "protobuf", "valueFraming": "confluent-header"}
    one_client.write_stream(
        table,
        **registering(schema_registry, deliveryGuarantee="exactly-once", **framing),
        keySchema=str(file),
        keyMessage="Key",
    )
    for topic, ids in ((first, range(1, 6)), (second, range(6, 11))):
        typed = read(
            spark, one_client.kafka, OURS, subscribe=topic, includeHeaders="true",
            kafka__isolation__level="read_committed", **registering(schema_registry, **framing),
        )  # fmt: skip
        found = typed.selectExpr("key.*", "value.id", "headers.key").orderBy("value.id")
        header = ["__value_schema_id"]
        assert [tuple(row) for row in found.collect()] == [
            (number, str(number), number, header) for number in ids
        ]
