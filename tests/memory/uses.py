"""Uses that hold users' data in memory; each function runs in a separate process."""

from __future__ import annotations

import json
from collections import deque
from contextlib import closing
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pyspark_kafka import QueryKind, container_for, parse_sink_options, parse_source_options
from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.application.checkpoints.logs import CheckpointLogs
from pyspark_kafka.application.lag.worker import LagWorker, QueryProgress, SourceProgress
from pyspark_kafka.bootstrap.container import closing_clients, sink_container_for
from pyspark_kafka.bootstrap.tools import letter_counter_for, record_tail_for
from pyspark_kafka.bootstrap.values import open_registry
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.offset_limits import Earliest
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.errors import RegistryUnavailableError
from pyspark_kafka.domain.values.registry import RegistryOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka.domain.options.source import SourceOptions

RECORD_BYTES: Final = 4_000_000
"""Four times what brokers take by default."""

TRIGGERS: Final = 3


def plan_triggers(client: str, servers: str, topic: str) -> None:
    """Plan batches whose sizes are sampled."""
    more = {"maxBytesPerTrigger": "10000000", "startingOffsets": "earliest"}
    options = source(client, servers, topic, QueryKind.STREAM, **more)
    with closing_clients(container_for(options)) as container:
        stream = container.micro_batch_stream()
        end = stream.initial_offset()
        for _ in range(TRIGGERS):
            end = stream.latest_offset(end, stream.default_read_limit)


def read_ranges(client: str, servers: str, topic: str) -> None:
    """Read a topic as a task does that has a range of each partition."""
    with closing_clients(container_for(source(client, servers, topic))) as container:
        fetcher = container.offset_fetcher()
        ends = fetcher.latest(fetcher.partitions(container.options().subscription))
        ranges = [OffsetRange(each, 0, end) for each, end in sorted(ends.items())]
        for _, batches in container.range_read().read_all(ranges, ALL_COLUMNS):
            drop(batches)


def tail_once(client: str, servers: str, topic: str) -> None:
    """Run ``tail --once``."""
    options = source(client, servers, topic)
    with record_tail_for(options) as tail:
        starts = tail.starts(options.subscription, Earliest())
        drop(tail.read(starts, tail.ends(starts)))


def follow(client: str, servers: str, topic: str) -> None:
    """Poll a topic as a task of a continuous query does, and as ``tail`` does."""
    options = source(client, servers, topic)
    with record_tail_for(options) as tail:
        starts = tail.starts(options.subscription, Earliest())
        left = sum(tail.ends(starts).values())
        for batch in tail.follow(starts):
            left -= batch.num_rows
            if not left:
                return


def count_letters(client: str, servers: str, topic: str) -> None:
    """Count the dead letters of a topic."""
    with letter_counter_for(source(client, servers, topic), topic) as counter:
        counter.count("query")


def commit_group(client: str, servers: str, topic: str) -> None:
    """Plan a batch, commit its offsets to a group, and start another query from them."""
    options = source(client, servers, topic)
    with closing_clients(container_for(options)) as container:
        fetcher = container.offset_fetcher()
        ends = fetcher.latest(fetcher.partitions(options.subscription))
        fetcher.commit(topic, ends)
        assert fetcher.committed(topic, ends) == ends
        container.batch().plan_tasks()


def write(client: str, servers: str, topic: str, records: int) -> None:
    """Write large records, faster than a broker takes them."""
    options = parse_sink_options(
        {
            "kafka.bootstrap.servers": servers,
            "client": client,
            "topic": topic,
            "kafka.max.request.size": str(2 * RECORD_BYTES),
        },
        QueryKind.BATCH,
    )
    batch = pa.RecordBatch.from_pydict({"value": pa.array([bytes(RECORD_BYTES)], pa.binary())})
    with closing_clients(sink_container_for(options)) as container:
        writer = container.record_writer()
        for _ in range(records):
            writer.write(batch, topic)
        writer.flush()


def list_log(directory: str) -> None:
    """Look for the last batch of a checkpoint."""
    offsets, commits = (
        FsspecMetadataLog(StoragePath(f"{directory}/{name}")) for name in ("offsets", "commits")
    )
    CheckpointLogs(offsets, commits).state()


def report_lag(partitions: int, reports: int) -> None:
    """Take the progress of a query whose feed nobody reads."""
    worker = LagWorker([], None)
    one, every = worker.feed("run"), worker.feed(None)
    for batch_id in range(reports):
        ends = {TopicPartition("t", each): 10_000 * batch_id + each for each in range(partitions)}
        progress = SourceProgress(PartitionOffsets(ends), PartitionOffsets(ends))
        worker.progressed(QueryProgress("id", "run", "name", batch_id, 17, {"0": progress}))
        while next(one.follow(None)).batch_id != batch_id:
            pass
    worker.close()
    drop(every.follow(None))


def ask_registry(url: str) -> None:
    """Ask for a schema."""
    settings = (("request.timeout.ms", "1000"),)
    with closing(open_registry(RegistryOptions(url, settings))) as registry:
        try:
            registry.by_id(1)
        except RegistryUnavailableError:
            return


def decode_fields(fields: int) -> None:
    """Resolve an Avro schema with many fields, and decode a value."""
    named = [{"name": f"field{each}", "type": "string"} for each in range(fields)]
    schema = json.dumps({"type": "record", "name": "R", "fields": named})
    options = source("memory", "memory", "t", valueFormat="avro", valueSchema=schema)
    container = container_for(options)
    cluster = container.memory_cluster()
    cluster.create_topic("t")
    cluster.produce("t", b"\x02x" * fields)
    typed = container.value_schemas().resolve()
    drop(container.typed_read(typed).read(OffsetRange(TopicPartition("t", 0), 0, 1)))


def source(
    client: str, servers: str, topic: str, query: QueryKind = QueryKind.BATCH, **more: str
) -> SourceOptions:
    given = {"kafka.bootstrap.servers": servers, "client": client, "subscribe": topic}
    return parse_source_options({**given, **more}, query)


def drop(batches: Iterator[object]) -> None:
    """Take everything, and keep nothing."""
    deque(batches, maxlen=0)
