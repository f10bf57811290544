"""A consumer group that shows how far a query is."""

from contextlib import closing
from functools import partial

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import RetriableError

from pyspark_kafka.testing import await_until
from tests.slowness import bound_s

from ..conformance.stream_runs import run_once
from .queries import OURS, read, read_stream

Offsets = dict[int, int]

_SECONDS = bound_s(60)


def listed_by_librdkafka(servers: str, group: str) -> Offsets:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    [answer] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    partitions = answer.result().topic_partitions or []
    return {one.partition: one.offset for one in partitions}


def listed_by_kafka_python(servers: str, group: str) -> Offsets:
    with closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
        offsets = admin.list_group_offsets([group])[group]
        return {one.partition: found.offset for one, found in offsets.items()}


def test_a_running_query_is_seen_by_tools_that_show_lag(spark, kafka, topics, client):
    topic, group = topics.create(2), topics.fresh_name()
    options = {"client": client, "commitOffsetsToGroup": group, "startingOffsets": "earliest"}
    query = (
        read_stream(spark, kafka, OURS, subscribe=topic, **options)
        .writeStream.format("noop")
        .start()
    )
    try:
        for total, added in ((5, range(5)), (12, range(7))):
            topics.numbers(topic, 0, added)
            # librdkafka ends the process if it asks while the coordinator is being found
            # (confluentinc/librdkafka#5040), and so comes second.
            await_until(partial(_is_at, kafka.bootstrap_servers, group, {0: total, 1: 0}), _SECONDS)
            assert listed_by_librdkafka(kafka.bootstrap_servers, group) == {0: total, 1: 0}
    finally:
        query.stop()
    assert query.exception() is None


def _is_at(servers: str, group: str, offsets: Offsets) -> bool:
    try:
        return listed_by_kafka_python(servers, group) == offsets
    except RetriableError:
        return False  # the group has no coordinator yet


def test_a_new_query_begins_where_a_group_is(spark, kafka, topics, client, tmp_path):
    topic, group = topics.create(2), topics.fresh_name()
    topics.numbers(topic, 0, range(5))
    first = {"client": client, "commitOffsetsToGroup": group, "startingOffsets": "earliest"}
    run_once(read_stream(spark, kafka, OURS, subscribe=topic, **first), tmp_path / "first")
    topics.numbers(topic, 0, range(5, 8))
    topics.numbers(topic, 1, range(8, 9))

    second = {"client": client, "kafka.group.id": group, "startingOffsets": "group"}
    batches = run_once(
        read_stream(spark, kafka, OURS, subscribe=topic, **second), tmp_path / "second"
    )
    assert batches == [[5, 6, 7, 8]]
    rows = read(spark, kafka, OURS, subscribe=topic, **second).collect()
    assert sorted(int(row.value) for row in rows) == [5, 6, 7, 8]
