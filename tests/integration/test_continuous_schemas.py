"""Continuous queries while the schemas of a real registry change, and while it is away."""

import json
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from pyspark_kafka import continuous
from pyspark_kafka.adapters.values.framing.wire_format import id_prefix
from pyspark_kafka.bootstrap.values import open_registry
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.registry import RegistryOptions, Schema, SchemaType
from pyspark_kafka.testing import KafkaWorld, Record, await_until
from tests.servers.fault_proxy import OPEN, Rules, Traffic, proxied
from tests.slowness import bound_s

SECONDS: Final = bound_s(120)
LOSING_ANSWERS: Final = Rules(to_client=Traffic(reset_after=20))
USER: Final = {"name": "user", "type": "string"}
AGE: Final = {"name": "age", "type": "int", "default": -1}
CITY: Final = {"name": "city", "type": "string", "default": ""}
AGE_AS_TEXT: Final = {"name": "age", "type": "string"}
ADA: Final = b"\x06ada"
BOB: Final = b"\x06bob\x04"
EVE: Final = b"\x06eve\x06\x08rome"


def users(records: pa.RecordBatch) -> pa.RecordBatch:
    lines = [
        f"{row['offset']} {row['value']['user']} {row['value']['age']}"
        for row in records.select(["offset", "value"]).to_pylist()
    ]
    return pa.RecordBatch.from_arrays([pa.array(lines)], ["value"])


def test_schemas_change_while_a_query_runs(client, fresh_name, kafka, schema_registry, tmp_path):
    world = KafkaWorld(client, fresh_name, kafka)
    source, target = (TopicPartition(world.topic(), 0) for _ in range(2))
    registry = open_registry(RegistryOptions(schema_registry))

    def register(subject: str, *fields: dict[str, Any]) -> int:
        text = json.dumps({"type": "record", "name": "User", "fields": fields})
        return registry.register(f"{source.topic}-{subject}", Schema(SchemaType.AVRO, text))

    first = register("value", USER)
    second = register("value", USER, AGE)
    old, new = Record(id_prefix(first) + ADA), Record(id_prefix(second) + BOB)
    world.produce(source, [old, new, old, new])
    common = {**world.addresses, "client": client}

    def written() -> set[str]:
        return {row["value"].decode() for row in world.records(target)}

    with proxied(schema_registry) as proxy:
        query = continuous.start(
            None,
            users,
            source={
                **common,
                "subscribe": source.topic,
                "startingOffsets": "earliest",
                "valueFormat": "avro",
                "schema.registry.url": f"http://{proxy.address}{urlsplit(schema_registry).path}",
            },
            sink={**common, "topic": target.topic},
            checkpointLocation=str(tmp_path / "checkpoint"),
            epoch="100 milliseconds",
        )
        expected = {"0 ada -1", "1 bob 2", "2 ada -1", "3 bob 2"}
        try:
            await_until(lambda: written() == expected, SECONDS)
            third = register("value", USER, AGE, CITY)
            proxy.set(LOSING_ANSWERS)
            proxy.reset_all()
            before = proxy.connections
            world.produce(source, [new, Record(id_prefix(third) + EVE), old])
            await_until(lambda: proxy.connections > before, SECONDS)
            proxy.set(OPEN)
            expected |= {"4 bob 2", "5 eve 3", "6 ada -1"}
            await_until(lambda: written() == expected, SECONDS)
            wrong = register("other", USER, AGE_AS_TEXT)
            world.produce(source, [old, Record(id_prefix(wrong) + b"\x06eve\x02x"), old])
            with pytest.raises(
                Exception,
                match=rf"record at offset 8 of {source} cannot be .*, schema id {wrong}\.",
            ):
                query.awaitTermination(SECONDS)
        finally:
            query.stop()
        assert written() - {"7 ada -1"} == expected
    world.close()
