from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pytest
from kafka import errors as kafka_errors
from kafka.protocol.consumer import FetchRequest

from pyspark_kafka.domain.errors import UnknownTopicError
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.errors import TopicRecreatedError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.ports.clock import Deadline
from pyspark_kafka.ports.continuous import StreamClient
from pyspark_kafka.ports.reading import RecordReader
from pyspark_kafka.testing.world import PATIENCE_S
from tests.servers.hostile_broker import Lie, Line, hostile_broker

from .hostile_uses import INPUT, HostileWorld

COLUMNS: Final = Projection(("offset", "value"))

END: Final = 60
OLD: Final = b"o" * 100_000
"""A response has ten of these records: some come after the first batch was taken."""

NEW: Final = b"n"


@pytest.fixture
def world():
    with hostile_broker() as broker:
        made = HostileWorld("kafka-python", broker)
        broker.cluster.append(INPUT, [OLD] * END, 1)
        yield made
        made.close()


def begun(world: HostileWorld) -> tuple[Iterator[pa.RecordBatch], list[bytes]]:
    return begun_with(world.container(**world.poll_timeout).record_reader())


def begun_with(reader: RecordReader) -> tuple[Iterator[pa.RecordBatch], list[bytes]]:
    batches = reader.read(OffsetRange(INPUT, 0, END), COLUMNS)
    return batches, values_of(next(batches))


def values_of(batch: pa.RecordBatch) -> list[Any]:
    return batch["value"].to_pylist()


def rest(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        yield from values_of(batch)


def lag(world: HostileWorld) -> Lie:
    """Return metadata of a broker that has not learned of the topic yet: another id."""
    old_id = world.broker.cluster.topic_ids[INPUT.topic].int + 1_000

    def answer(_: object, response: Any) -> None:
        for topic in response.topics:
            topic.topic_id = type(topic.topic_id)(int=old_id)

    return Lie("Metadata", answer)


def refuse(_: object, response: Any) -> None:
    """Answer as a leader that does not know an id."""
    for topic in response.responses:
        for partition in topic.partitions:
            partition.error_code = kafka_errors.UnknownTopicIdError.errno
            partition.records = b""


def hang_up(line: Line, _: bytes) -> None:
    line.reset()


def next_fetches(world: HostileWorld, times: int, **lie: Any) -> Lie:
    return Lie("Fetch", **lie, times=times, after=world.broker.answered["Fetch"])


def test_another_id_is_another_topic(world):
    batches, values = begun(world)
    world.broker.cluster.recreate(INPUT.topic)
    world.broker.cluster.append(INPUT, [NEW] * 2 * END, 10)
    with pytest.raises(TopicRecreatedError) as caught:
        values.extend(rest(batches))
    assert set(values) == {OLD}
    assert (caught.value.partition, caught.value.offset) == (INPUT, len(values))
    assert caught.value.earliest == 0


def test_a_range_goes_on_in_its_topic_after_another_range(world):
    """The other range, which the same reader reads in between, is one of the new topic."""
    reader = world.container(**world.poll_timeout).record_reader()
    batches, values = begun_with(reader)
    world.broker.cluster.recreate(INPUT.topic)
    world.broker.cluster.append(INPUT, [NEW] * 2 * END, 10)
    others, new_values = begun_with(reader)
    assert [*new_values, *rest(others)] == [NEW] * END
    with pytest.raises(TopicRecreatedError) as caught:
        values.extend(rest(batches))
    assert (caught.value.offset, set(values)) == (len(values), {OLD})


def test_a_leader_that_lags_is_asked_again(world):
    """The leader does not know the topic's id yet; the metadata do."""
    batches, values = begun(world)
    world.broker.lies = (next_fetches(world, 2, answer=refuse),)
    assert [*values, *rest(batches)] == [OLD] * END


def test_metadata_that_lag_are_no_loss(world):
    """The leader still knows the id of what was read."""
    batches, values = begun(world)
    world.broker.lies = (lag(world), next_fetches(world, 1, send=hang_up))
    assert [*values, *rest(batches)] == [OLD] * END


def test_metadata_that_lagged_before_the_range_are_no_loss(world):
    """Nothing was read of the topic that they named."""
    world.broker.lies = (Lie("Metadata", lag(world).answer, times=1),)
    batches, values = begun(world)
    assert [*values, *rest(batches)] == [OLD] * END


def test_metadata_that_lag_are_no_loss_to_a_continuous_query(world):
    client = world.source()
    client.assign(PartitionOffsets({INPUT: 0}))
    values = polled(client, 1)
    world.broker.lies = (lag(world), next_fetches(world, 1, send=hang_up))
    assert [*values, *polled(client, END - len(values))] == [OLD] * END


def polled(client: StreamClient, count: int) -> list[bytes]:
    values: list[bytes] = []
    deadline = Deadline.after(PATIENCE_S)
    while len(values) < count and not deadline.has_passed:
        for each in client.poll(0.1):
            values += values_of(each.records) if each.records is not None else []
    return values


def test_a_topic_that_is_only_deleted_does_not_exist(world):
    world.limits = {**world.limits, "poll": "300"}
    batches, values = begun(world)
    world.broker.cluster.delete(INPUT.topic)
    with pytest.raises(UnknownTopicError):
        values.extend(rest(batches))
    assert set(values) == {OLD}


def name_topics(_: object, response: Any) -> None:
    """Answer as a broker before Kafka 3.1, whose fetches have names of topics."""
    for api in response.api_keys:
        if api.api_key == FetchRequest.API_KEY:
            api.max_version = 12


def hide_ids(_: object, response: Any) -> None:
    """Answer as a broker before Kafka 2.8, or one of another vendor, without ids."""
    for topic in response.topics:
        topic.topic_id = type(topic.topic_id)(int=0)


@pytest.mark.parametrize("lie", [Lie("ApiVersions", name_topics), Lie("Metadata", hide_ids)])
def test_brokers_without_ids_are_read(world, lie):
    """Fetches name the topic, also if metadata have ids that may be old."""
    world.broker.lies = (lie,)
    batches, values = begun(world)
    lies = (lie,) if lie.api == "Metadata" else (lie, lag(world))
    world.broker.lies = (*lies, next_fetches(world, 1, send=hang_up))
    assert [*values, *rest(batches)] == [OLD] * END
