"""Every way to use a cluster, against a hostile broker; each returns what an honest one yields."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, final

from pyspark_kafka.domain.options.sink import SinkOptions
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.clock import Deadline
from pyspark_kafka.ports.continuous import PolledRecords, StreamClient
from pyspark_kafka.testing.world import PATIENCE_S, Record, World
from pyspark_kafka.testing.writing_contract import batch_of
from tests.servers.hostile_broker import HostileBroker

Use = Callable[["HostileWorld"], object]

INPUT: Final = TopicPartition("t", 0)
OUTPUT: Final = TopicPartition("t", 1)
RECORDS: Final = 30
VALUES: Final = [b"%d" % number for number in range(RECORDS)]
GROUP: Final = "g"
COMMITTED: Final = 7
EXACTLY_ONCE: Final = {"deliveryGuarantee": "exactly-once", "metadataPath": "/never/written"}

IMPATIENT: Final = {"api": "600", "poll": "300", "delivery": "1000"}
"""Time-outs in milliseconds, for answers that never become true."""

PATIENT: Final = {"api": "10000", "poll": "10000", "delivery": "10000"}


@final
class HostileWorld(World):
    """A cluster of one hostile broker; requests are repeated soon, if they are repeated."""

    def __init__(self, client: str, broker: HostileBroker) -> None:
        super().__init__(client)
        self.broker = broker
        self.limits: Mapping[str, str] = PATIENT

    @property
    def addresses(self) -> Mapping[str, str]:
        return {
            "kafka.bootstrap.servers": self.broker.bootstrap_servers,
            "kafka.default.api.timeout.ms": self.limits["api"],
            "kafka.request.timeout.ms": "200",
            "kafka.retry.backoff.ms": "20",
        }

    def topic(self, partitions: int = 1, **config: str) -> str:  # noqa: ARG002
        return INPUT.topic

    def produce(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        self.broker.cluster.append(partition, [record.value or b"" for record in records], 10)

    def sink(self, **options: str) -> SinkOptions:
        return self.sink_options(
            kafka__delivery__timeout__ms=self.limits["delivery"],
            kafka__max__block__ms=self.limits["api"],
            kafka__linger__ms="0",
            **options,
        )

    def source(self, sink: SinkOptions | None = None) -> StreamClient:
        return self.stream_client(sink, GROUP, **self.poll_timeout)

    @property
    def poll_timeout(self) -> Mapping[str, str]:
        return {"kafkaConsumer.pollTimeoutMs": self.limits["poll"]}


def read(world: HostileWorld) -> list[bytes]:
    reader = world.container(**world.poll_timeout).record_reader()
    batches = reader.read(OffsetRange(INPUT, 0, RECORDS), ALL_COLUMNS)
    return [row["value"] for batch in batches for row in batch.to_pylist()]


def _values(polled: PolledRecords) -> list[bytes]:
    rows = [] if polled.records is None else polled.records.to_pylist()
    return [row["value"] for row in rows]


def stream(world: HostileWorld) -> list[bytes]:
    client = world.source()
    values: list[bytes] = []
    client.assign(PartitionOffsets({INPUT: 0}))
    deadline = Deadline.after(PATIENCE_S)
    while len(values) < RECORDS and not deadline.has_passed:
        for polled in client.poll(0.1):
            client.write(polled, ())
            values += _values(polled)
    return values


def write(world: HostileWorld) -> list[bytes]:
    container = world.make_sink_container(world.sink())
    world._closers.append(container.shutdown_resources)
    writer = container.record_writer()
    writer.write(batch_of(value=VALUES, partition=[OUTPUT.partition] * RECORDS), OUTPUT.topic)
    assert writer.flush().records == RECORDS
    return world.broker.cluster.values(OUTPUT)


def transact(world: HostileWorld) -> set[tuple[str, bool]]:
    """Begin and commit a transaction, as the driver of a sink does, perhaps more than once."""
    container = world.make_sink_container(world.sink())
    world._closers.append(container.shutdown_resources)
    transactions = container.transactions()
    transactions.commit(transactions.begin("id"))
    return set(world.broker.cluster.ended)


def pass_on(world: HostileWorld) -> tuple[list[bytes], int]:
    client = world.source(world.sink(topic=OUTPUT.topic, **EXACTLY_ONCE))
    client.assign(PartitionOffsets({INPUT: 0}))
    deadline = Deadline.after(PATIENCE_S)
    acknowledged: dict[TopicPartition, int] = {}
    while acknowledged.get(INPUT) != RECORDS and not deadline.has_passed:
        for polled in client.poll(0.1):
            values = _values(polled)
            output = batch_of(value=values, partition=[OUTPUT.partition] * len(values))
            client.write(polled, [output])
        acknowledged.update(client.acknowledged())
    cluster = world.broker.cluster
    return cluster.values(OUTPUT), cluster.committed[GROUP].get(INPUT, -1)


def list_offsets(world: HostileWorld) -> tuple[int, int]:
    fetcher = world.container().offset_fetcher()
    assert fetcher.partitions(world.options(subscribe=INPUT.topic).subscription) == {INPUT, OUTPUT}
    return fetcher.earliest([INPUT])[INPUT], fetcher.latest([INPUT])[INPUT]


def commit(world: HostileWorld) -> int:
    fetcher = world.container().offset_fetcher()
    fetcher.commit(GROUP, PartitionOffsets({INPUT: COMMITTED}))
    return world.broker.cluster.committed[GROUP][INPUT]


def committed(world: HostileWorld) -> Mapping[TopicPartition, int]:
    world.broker.cluster.committed[GROUP][INPUT] = COMMITTED
    return dict(world.container().offset_fetcher().committed(GROUP, [INPUT]))


HONEST: Final[Mapping[Use, object]] = {
    read: VALUES,
    stream: VALUES,
    write: VALUES,
    transact: {("id", True)},
    pass_on: (VALUES, RECORDS),
    list_offsets: (0, RECORDS),
    commit: COMMITTED,
    committed: {INPUT: COMMITTED},
}
"""The result of each use without lies, or after it has recovered from one."""
