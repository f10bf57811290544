"""Tasks that read several partitions."""

import json
from pathlib import Path
from typing import Any

from .queries import OURS, assert_same_rows, read, read_stream, run_available_now

PARTITIONS = 12
SIZES = {number: 7 * number for number in range(PARTITIONS)}


def test_a_batch_has_as_many_tasks_as_it_may(spark, kafka, topics, client):
    topic = topics.create(PARTITIONS)
    topics.fill(topic, SIZES)
    each = read(spark, kafka, OURS, client=client, subscribe=topic)
    joined = read(spark, kafka, OURS, client=client, subscribe=topic, maxPartitions="3")
    assert (each.rdd.getNumPartitions(), joined.rdd.getNumPartitions()) == (PARTITIONS, 3)
    assert_same_rows(joined, each)


def test_a_stream_goes_on_with_another_number_of_tasks(spark, kafka, topics, client, tmp_path):
    """Its offset log is the same with any number, so the option can be changed at a restart."""
    topic = topics.create(PARTITIONS)
    joined = {"maxPartitions": "2", "minPartitions": "2"}
    for options in (joined, {}, joined):
        topics.fill(topic, SIZES)
        stream = read_stream(
            spark,
            kafka,
            OURS,
            client=client,
            subscribe=topic,
            startingOffsets="earliest",
            **options,
        )
        output = run_available_now(stream, tmp_path)
    assert_same_rows(output, read(spark, kafka, OURS, subscribe=topic))
    assert [logged(tmp_path, batch) for batch in range(3)] == [
        {topic: {str(number): (batch + 1) * size for number, size in SIZES.items()}}
        for batch in range(3)
    ]


def logged(directory: Path, batch: int) -> dict[str, Any]:
    [log] = directory.glob(f"**/offsets/{batch}")
    return json.loads(log.read_text().splitlines()[-1])
