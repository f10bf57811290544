"""Rights that each feature needs: with them it works, without one it is refused by name."""

from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_kafka.bootstrap.container import (
    Container,
    SinkContainer,
    closing_clients,
    container_for,
    sink_container_for,
)
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.security.errors import AuthorizationError
from pyspark_kafka.domain.security.rights import Right
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing.stream_task import StreamTask, echo
from tests.servers.secured import SecuredBroker

ROWS = pa.RecordBatch.from_pydict({"value": [b"a", b"b"]})
QUERY_ID = "q1"
SHORT = {
    "kafka.default.api.timeout.ms": "10000",
    "kafka.request.timeout.ms": "5000",
    "kafka.max.block.ms": "10000",
    "kafka.delivery.timeout.ms": "10000",
}


@dataclass(frozen=True)
class Query:
    """A query of one user, with a topic that has two records, one without any, and a group."""

    options: dict[str, str]
    topic: str
    copy: str
    group: str
    directory: Path

    def source(self) -> AbstractContextManager[Container]:
        given = {**self.options, **SHORT, "subscribe": self.topic, "startingOffsets": "earliest"}
        return closing_clients(container_for(parse_source_options(given, QueryKind.STREAM)))

    def sink(self, **more: str) -> AbstractContextManager[SinkContainer]:
        given = {
            **self.options,
            **SHORT,
            "topic": self.copy,
            "checkpointLocation": str(self.directory / "checkpoint"),
        }
        return closing_clients(
            sink_container_for(parse_sink_options(given | more, QueryKind.STREAM))
        )


def read(query: Query) -> None:
    with query.source() as container:
        stream = container.micro_batch_stream()
        start = stream.initial_offset()
        end = stream.latest_offset(start, stream.default_read_limit)
        rows = [
            batch.num_rows
            for part in stream.plan_input_partitions(start, end)
            for batch in container.range_read().read(part, Projection(("value",)))
        ]
        assert sum(rows) == 2


def commit(query: Query) -> None:
    with query.source() as container:
        fetcher = container.offset_fetcher()
        fetcher.commit(query.group, PartitionOffsets({TopicPartition(query.topic, 0): 1}))


def committed(query: Query) -> None:
    with query.source() as container:
        partition = TopicPartition(query.topic, 0)
        assert container.offset_fetcher().committed(query.group, [partition]) == {}


def write(query: Query) -> None:
    with query.sink() as container:
        assert container.sink_task().write([ROWS]).delivered.records == 2


def write_once(query: Query) -> None:
    with query.sink(deliveryGuarantee="exactly-once") as container:
        written = container.sink_task().write([ROWS], f"pyspark-kafka-{QUERY_ID}-0-0")
        container.kafka_sink().commit(0, QUERY_ID, [written])


def copy_once(query: Query) -> None:
    given = {**query.options, **SHORT}
    source = parse_source_options(given | {"subscribe": query.topic}, QueryKind.STREAM)
    written = {
        "topic": query.copy,
        "deliveryGuarantee": "exactly-once",
        "checkpointLocation": str(query.directory),
    }
    sink = parse_sink_options(given | written, QueryKind.STREAM)
    partition = TopicPartition(query.topic, 0)
    with closing_clients(container_for(source)) as container:
        client = container.stream_client(sink, ContinuousSettings(f"pyspark-kafka-{QUERY_ID}"))
        with closing(client):
            task = StreamTask(client, echo)
            task.assign({partition: 0})
            task.process_to({partition: 2})


def lag(query: Query) -> None:
    with query.source() as container:
        behind = PartitionOffsets({TopicPartition(query.topic, 0): 0})
        [measured] = container.lag_meter(max_counted=10).measure_all([behind])
        assert measured.lag.total == 2


@dataclass(frozen=True)
class Feature:
    """A feature and its rights; in a resource ``{}`` stands for the query's own name."""

    name: str
    use: Callable[[Query], None]
    rights: tuple[tuple[str, str, str], ...]
    clients: tuple[str, ...] = field(default=("kafka-python", "confluent"))


TOPIC, COPY, GROUP = "{0.topic}", "{0.copy}", "{0.group}"
READ = ("Read", "Topic", TOPIC)
WRITE = ("Write", "Topic", COPY)
IDS = ("Write", "Transactional_Id", "pyspark-kafka-*")
FEATURES = (
    Feature("read", read, (READ,)),
    Feature("commitOffsetsToGroup", commit, (("Read", "Group", GROUP), READ)),
    Feature("startingOffsets=group", committed, (("Describe", "Group", GROUP), READ)),
    Feature("write", write, (WRITE,)),
    Feature("exactly-once", write_once, (WRITE, IDS), ("kafka-python",)),
    Feature(
        "continuous, exactly-once",
        copy_once,
        (READ, WRITE, IDS, ("Read", "Group", f"pyspark-kafka-{QUERY_ID}")),
        ("kafka-python",),
    ),
    Feature("lag", lag, (READ,)),
)


CASES = [
    pytest.param(feature, client, id=f"{feature.name}-{client}")
    for feature in FEATURES
    for client in feature.clients
]


@pytest.mark.parametrize(("feature", "client"), CASES)
def test_rights(secured, fresh_name, tmp_path, feature, client):
    user, topic, copy, group = (fresh_name() for _ in range(4))
    for name in (topic, copy):
        secured.cluster.create_topic(name)
    fill(secured, topic)
    options = secured.add_user(user) | {"client": client}
    query = Query(options, topic, copy, group, tmp_path)
    missing = {
        (resource.upper(), name.format(query)): operation
        for operation, resource, name in feature.rights
    }
    while missing:
        with pytest.raises(AuthorizationError) as refused:
            feature.use(query)
        assert refused.value.principal == f"User:{user}"
        [named] = refused.value.rights
        [found] = [each for each in missing if is_for(each, named)]
        secured.grant(user, missing.pop(found), *found)
    feature.use(query)


def fill(secured: SecuredBroker, topic: str) -> None:
    options = parse_sink_options(secured.cluster.options | {"topic": topic}, QueryKind.BATCH)
    with closing_clients(sink_container_for(options)) as container:
        container.sink_task().write([ROWS])


def is_for(granted: tuple[str, str], named: Right) -> bool:
    resource, name = granted
    if resource != named.resource.name:
        return False
    prefix = name.removesuffix("*")
    return named.name == name if prefix == name else named.name.startswith(prefix)
