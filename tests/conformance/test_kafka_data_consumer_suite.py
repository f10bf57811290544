"""KafkaDataConsumerSuite: tasks that read through clients which a process keeps."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest

from pyspark_kafka.bootstrap.container import Container
from pyspark_kafka.bootstrap.pool import ContainerPool
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import KafkaWorld, Record, await_until

from ..spark.queries import OURS, PEER, read, read_stream
from .one_client import one_client
from .peer import Held, peer
from .side_by_side import Both, Sides, ends, failure, last_cause
from .stream_runs import run_once
from .task_attempts import failing_once, listed_by, task_attempts
from .worker_connections import Connections, worker_connections

SUITE = "KafkaDataConsumerSuite"

VALUE = Projection(("value",))


@pytest.fixture
def pool():
    made = ContainerPool()
    yield made
    made.close()


@pytest.fixture
def partition(world):
    made = TopicPartition(world.topic(), 0)
    world.produce(made, [Record(b"%d" % number) for number in range(1_000)])
    return made


def options(world: KafkaWorld, **given: str) -> SourceOptions:
    return parse_source_options(
        {
            **world.addresses,
            "client": world.client,
            "subscribe": "t",
            "kafkaConsumer.pollTimeoutMs": "30000",
            **given,
        },
        QueryKind.BATCH,
    )


def numbers(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return [int(row["value"]) for batch in batches for row in batch.to_pylist()]


def open_read(
    container: Container, partition: TopicPartition, start: int, end: int
) -> Iterator[pa.RecordBatch]:
    batches: Iterator[pa.RecordBatch] = container.range_read().read(
        OffsetRange(partition, start, end), VALUE
    )
    return batches


@peer(SUITE, "SPARK-19886: Report error cause correctly in throwOnDataLoss", Held.BESIDE_JVM)
def test_spark_19886_report_error_cause_correctly(spark, kafka, world, partition, client):
    world.delete_records(partition, 10)
    start = {"subscribe": partition.topic, "startingOffsets": ends(partition.topic, 0)}
    ours = failure(lambda: read(spark, kafka, OURS, client=client, **start).collect())
    theirs = failure(lambda: read(spark, kafka, PEER, **start).collect())
    loss = f"Could not read records in offset [0, 1000) for topic partition {partition}"
    assert "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] " in str(ours)
    assert loss in str(ours)
    assert loss in str(theirs)
    cause = last_cause(theirs)
    assert cause.getClass().getSimpleName() == "OffsetOutOfRangeException"
    assert "offset=0" in cause.getMessage()
    assert (
        f"Caused by: [KAFKA_OFFSET_OUT_OF_RANGE] Offset 0 of {partition} is out of range: "
        "the broker holds [10, 1000)"
    ) in str(ours)


@peer(SUITE, "new KafkaDataConsumer instance in case of Task retry", Held.BESIDE_JVM)
@one_client
def test_new_instance_in_case_of_task_retry(spark, kafka, world, client, tmp_path):
    """A task that failed while it read reads all of its records again, by another client."""
    partition = TopicPartition(world.topic(), 0)
    # More than the buffers hold between what reads and what fails.
    world.produce(partition, [Record(b"%-50000d" % number) for number in range(100)])
    listed = worker_connections(spark, kafka)
    before = listed()
    rows = {}
    with task_attempts(spark, 2):
        for source, chosen in ((OURS, {"client": client}), (PEER, {})):
            table = read(spark, kafka, source, subscribe=partition.topic, **chosen)
            fail = failing_once(tmp_path / source, 1, listed)
            rows[source] = table.rdd.mapPartitions(fail).collect()
    assert [int(row.value) for row in rows[OURS]] == [*range(100)]
    assert rows[OURS] == rows[PEER]
    failed, retried = (listed_by(tmp_path / OURS, attempt) for attempt in range(2))
    assert failed - before
    assert retried - failed
    await_until(lambda: not (failed - before) & listed())


@peer(SUITE, "SPARK-23623: concurrent use of KafkaDataConsumer", Held.BESIDE_JVM)
@one_client
def test_spark_23623_concurrent_use(spark, kafka, partition, client, tmp_path):
    listed = worker_connections(spark, kafka)
    rows = {}
    with task_attempts(spark, 2):
        for source, chosen in ((OURS, {"client": client}), (PEER, {})):
            reading = {"subscribe": partition.topic, "minPartitions": "8", **chosen}
            table = read(spark, kafka, source, includeHeaders="true", **reading)
            fail = failing_once(tmp_path / source, 4, listed)
            rows[source] = table.rdd.mapPartitions(fail).collect()
            assert len(list((tmp_path / source).glob("*-0"))) == 2
            assert len(list((tmp_path / source).glob("*-1"))) == 2
    assert sorted(int(row.value) for row in rows[OURS]) == [*range(1_000)]
    assert sorted(rows[OURS]) == sorted(rows[PEER])


@peer(SUITE, "same KafkaDataConsumer instance in case of same token", Held.SPARK)
@peer(SUITE, "new KafkaDataConsumer instance in case of token renewal", Held.SPARK)
@peer(
    SUITE,
    "SPARK-25151 Handles multiple tasks in executor fetching same (topic, partition) pair",
    Held.BESIDE_JVM,
)
@one_client
def test_tasks_of_one_partition_keep_their_clients_until_the_token_is_renewed(
    spark, kafka, topics, client, tmp_path
):
    """Two tasks at two places of a partition read on with their clients, batch after batch.

    Spark passes no token to Python: what can be renewed are the credentials of the options.
    """
    topic = topics.create()
    topics.numbers(topic, 0, range(400))
    reading = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "100",
        "minPartitions": "2",
    }
    listed = worker_connections(spark, kafka)
    seen: list[Connections] = []

    def run(source: str, **chosen: str) -> list[list[int]]:
        stream = read_stream(spark, kafka, source, **reading, **chosen)
        return run_once(stream, tmp_path / source, lambda _batch: seen.append(listed()))

    theirs = run(PEER)
    seen.clear()
    with_token = {"client": client, "kafka__sasl__jaas__config": login("one")}
    ours = run(OURS, **with_token)
    assert ours == theirs == [[*range(start, start + 100)] for start in range(0, 400, 100)]
    # Spark takes its idle workers in turn: by then each of them has a client.
    assert seen[0]
    assert not seen[3] - seen[2]
    connected = seen[-1]
    topics.numbers(topic, 0, range(400, 450))
    assert run(OURS, **with_token) == [[*range(400, 450)]]
    # The process that plans a query has connections too, and ends with it.
    workers = {process for process, _port in connected & seen[-1]}
    assert not made_by(workers, seen[-1] - connected)
    connected = seen[-1]
    topics.numbers(topic, 0, range(450, 500))
    renewed = {**with_token, "kafka__sasl__jaas__config": login("two")}
    assert run(OURS, **renewed) == [[*range(450, 500)]]
    assert made_by(workers, seen[-1] - connected)


def made_by(processes: set[int], connections: Connections) -> set[tuple[int, int]]:
    return {one for one in connections if one[0] in processes}


def login(token: str) -> str:
    """Return the setting of credentials, which a broker without authentication does not ask for."""
    return (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{token}" password="of-{token}";'
    )


@peer(
    SUITE,
    "SPARK-25151 Handles multiple tasks in executor fetching same (topic, partition) pair and "
    "same offset (edge-case) - data in use",
    Held.BESIDE_JVM,
)
@peer(
    SUITE,
    "SPARK-25151 Handles multiple tasks in executor fetching same (topic, partition) pair and "
    "same offset (edge-case) - data not in use",
    Held.BESIDE_JVM,
)
@one_client
def test_spark_25151_the_same_offset(spark, kafka, partition, client):
    reading = Sides(spark, kafka, client).batch(subscribe=partition.topic)
    at_once = Both(reading.ours.union(reading.ours), reading.theirs.union(reading.theirs))
    for _time in range(2):
        assert at_once.numbers() == sorted([*range(1_000)] * 2)
