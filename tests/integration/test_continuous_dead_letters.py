from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyspark_kafka import continuous
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.dead_letter import DeadLetter
from pyspark_kafka.testing import KafkaWorld, Record, await_until
from pyspark_kafka.testing.world import COMMITTED
from tests.slowness import bound_s

COUNT = 40
BAD = [*range(0, COUNT, 8)]
SECONDS = bound_s(120)
"""The first query compiles the decoder, unless a run before has."""


def ids(records: pa.RecordBatch) -> pa.RecordBatch:
    found: Any = pc.struct_field(records["value"], "id")
    return pa.RecordBatch.from_arrays([found.cast(pa.string())], ["value"])


@pytest.mark.parametrize(
    ("client", "guarantee"), [("confluent", "at-least-once"), ("kafka-python", "exactly-once")]
)
def test_each_bad_record_has_a_letter_before_it_is_passed(
    client, fresh_name, kafka, tmp_path, guarantee
):
    world = KafkaWorld(client, fresh_name, kafka)
    source, target, letters = (TopicPartition(world.topic(), 0) for _ in range(3))
    values = (b"{" if number in BAD else b'{"id":%d}' % number for number in range(COUNT))
    world.produce(source, [Record(value) for value in values])
    common = {**world.addresses, "client": client}
    query = continuous.start(
        None,
        ids,
        source={
            **common,
            "subscribe": source.topic,
            "startingOffsets": "earliest",
            "valueFormat": "json",
            "valueSchema": "id bigint",
            "deadLetterTopic": letters.topic,
        },
        sink={**common, "topic": target.topic, "deliveryGuarantee": guarantee},
        checkpointLocation=str(tmp_path / "checkpoint"),
        epoch="100 milliseconds",
        name="typed",
    )
    try:
        expected = COUNT - len(BAD)
        await_until(lambda: len(world.records(target, **COMMITTED)) == expected, SECONDS)
        found = world.records(letters)
    finally:
        query.stop()
    query.awaitTermination(0)
    origins = [
        DeadLetter.from_headers([(pair["key"], pair["value"]) for pair in row["headers"]])
        for row in found
    ]
    assert [(each and each.origin, each and each.offset) for each in origins] == [
        (source, number) for number in BAD
    ]
    assert {each and each.query for each in origins} == {query.id}
    written = [int(row["value"]) for row in world.records(target, **COMMITTED)]
    assert written == [number for number in range(COUNT) if number not in BAD]
    assert sum(each["deadLetters"] for each in query.recentProgress) == len(BAD)
    world.close()
