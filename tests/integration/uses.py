"""Uses of a cluster by queries, each as one call with options and a topic."""

import time
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from pyspark_kafka.bootstrap.container import (
    Container,
    closing_clients,
    container_for,
    sink_container_for,
)
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.security.policy import UNRESTRICTED
from pyspark_kafka.domain.topic_partition import TopicPartition

EXACTLY_ONCE: Final = {"deliveryGuarantee": "exactly-once", "checkpointLocation": "memory://r"}

MAX_CONTINUOUS_S: Final = 10.0
"""How long a continuous query is polled that does not fail before."""


def plan(options: dict[str, str], topic: str) -> None:
    given = parse_source_options({**options, "subscribe": topic}, QueryKind.BATCH, UNRESTRICTED)
    with closing_clients(container_for(given)) as container:
        container.batch().plan_input_partitions()


def stream_offsets(options: dict[str, str], topic: str) -> None:
    given = parse_source_options({**options, "subscribe": topic}, QueryKind.STREAM)
    with closing_clients(container_for(given)) as container:
        container.offset_fetcher().latest([TopicPartition(topic, 0)])


def read(options: dict[str, str], topic: str) -> None:
    given = parse_source_options({**options, "subscribe": topic}, QueryKind.BATCH)
    with closing_clients(container_for(given)) as container:
        wanted = OffsetRange(TopicPartition(topic, 0), 0, 1)
        for _ in container.range_read().read(wanted, Projection(("value",))):
            pass


def values(container: Container) -> list[bytes | None]:
    """Return the values of all records that a batch query reads."""
    read = container.range_read().read
    return [
        value
        for offset_range in container.batch().plan_input_partitions()
        for batch in read(offset_range, Projection(("value",)))
        for value in batch.column("value").to_pylist()
    ]


def write(options: dict[str, str], topic: str) -> None:
    given = parse_sink_options({**options, "topic": topic}, QueryKind.BATCH)
    with closing_clients(sink_container_for(given)) as container:
        container.sink_task().write([pa.RecordBatch.from_pydict({"value": [b"x"]})])


def begin_transaction(options: dict[str, str], topic: str) -> None:
    sink = {**options, **EXACTLY_ONCE, "topic": topic}
    with closing_clients(sink_container_for(parse_sink_options(sink, QueryKind.STREAM))) as made:
        made.transactions().begin(f"id-{topic}")


def run_continuously(options: dict[str, str], topic: str, **sink: str) -> None:
    """Copy records until an error, or for ``MAX_CONTINUOUS_S``."""
    source = parse_source_options({**options, "subscribe": topic}, QueryKind.STREAM)
    written = parse_sink_options({**options, "topic": topic, **sink}, QueryKind.STREAM)
    with closing_clients(container_for(source)) as container:
        client = container.stream_client(written, ContinuousSettings(f"group-{topic}"))
        try:
            client.assign(PartitionOffsets({TopicPartition(topic, 0): 0}))
            deadline = time.monotonic() + MAX_CONTINUOUS_S
            while time.monotonic() < deadline:
                for polled in client.poll(0.5):
                    client.write(polled, () if polled.records is None else [polled.records])
        finally:
            client.close()


def write_without_id(options: dict[str, str], topic: str) -> None:
    write({**options, "kafka.enable.idempotence": "false"}, topic)


def read_continuously(options: dict[str, str], topic: str) -> None:
    """Copy records, not idempotently."""
    # Without a producer id, for which a right is missing as well.
    run_continuously({**options, "kafka.enable.idempotence": "false"}, topic)


def run_exactly_once(options: dict[str, str], topic: str) -> None:
    run_continuously(options, topic, **EXACTLY_ONCE)


def commit_offsets(options: dict[str, str], topic: str) -> None:
    given = parse_source_options({**options, "subscribe": topic}, QueryKind.STREAM)
    with closing_clients(container_for(given)) as container:
        container.offset_fetcher().commit(
            f"group-{topic}", PartitionOffsets({TopicPartition(topic, 0): 1})
        )


def fetch_committed(options: dict[str, str], topic: str) -> None:
    given = parse_source_options({**options, "subscribe": topic}, QueryKind.STREAM)
    with closing_clients(container_for(given)) as container:
        container.offset_fetcher().committed(f"group-{topic}", [TopicPartition(topic, 0)])


USES: Final[dict[str, Callable[[dict[str, str], str], None]]] = {
    "plan": plan,
    "read": read,
    "write": write,
    "transaction": begin_transaction,
    "continuous": run_continuously,
    "exactly once": run_exactly_once,
    "commit": commit_offsets,
    "committed offsets": fetch_committed,
}
"""All of them, by name."""

TRANSACTIONAL: Final = frozenset({"transaction", "exactly once"})
"""Uses that the client `confluent` refuses."""
