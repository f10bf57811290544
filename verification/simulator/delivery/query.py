"""A query that writes, the people who create its topic again, and what it is promised."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pyspark_kafka.adapters.confluent.cluster_errors import ClusterErrors
from pyspark_kafka.adapters.confluent.cluster_settings import ClusterSettings
from pyspark_kafka.adapters.confluent.delivery_errors import WITHOUT_OFFSET
from pyspark_kafka.adapters.confluent.producer_config import producer_client_config
from pyspark_kafka.adapters.confluent.record_writer import ConfluentRecordWriter
from pyspark_kafka.adapters.confluent.stream_sinks import AtLeastOnceSink
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions, parse_sink_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.continuous import PolledRecords

from ..engine.outcome import ViolationError
from .faults import Fault
from .librdkafka import TOPIC, SimulatedProducer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .world import World

ME: Final = "query"
INPUT: Final = TopicPartition("in", 0)

_MAX_ATTEMPTS: Final = 10
_MAX_PAUSE_MS: Final = 2_000
_TURN_MS: Final = 20


@cache
def _options() -> SinkOptions:
    given = {"client": "confluent", "topic": TOPIC, "kafka.bootstrap.servers": "127.0.0.1:1"}
    return parse_sink_options(given, QueryKind.STREAM)


@cache
def _settings() -> ClusterSettings:
    return ClusterSettings(_options(), producer_client_config)


class SimulatedCluster:
    """A cluster whose producers are simulated."""

    def __init__(self, world: World) -> None:
        self.settings = _settings()
        self.errors = ClusterErrors(self.settings)
        self._world = world
        self._made: SimulatedProducer | None = None

    @property
    def library(self) -> SimulatedProducer:
        self._world.producers += 1
        self._made = SimulatedProducer(self._world, self._world.producers)
        return self._made

    def new_handle(self, *_: object) -> SimulatedProducer | None:
        return self._made


class Query:
    """Writes rows again until they are delivered, as Spark and a continuous query do."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._written = 0
        world.scheduler.spawn(ME, self._run)

    def _run(self) -> None:
        world = self._world
        write = self._write_continuously if world.settings.is_continuous else self._write_batch
        for number in range(world.settings.writes):
            if fired := world.decisions.has(ME, Fault.PAUSE, 0.5):
                world.scheduler.sleep(fired.between(1, _MAX_PAUSE_MS))
            self._may_recreate()
            rows = world.decisions.between(ME, 1, world.settings.rows)
            values = [b"r%d.%d" % (number, row) for row in range(rows)]
            if not any(write(values) for _ in range(_MAX_ATTEMPTS)):
                raise ViolationError("stuck", f"{values} cannot be written")
        self._close()

    def _may_recreate(self) -> None:
        world = self._world
        if fired := world.decisions.has("people", Fault.RECREATED, 0.4):
            delay_ms = fired.between(0, 100)
            world.scheduler.at(delay_ms, self._delete)
            world.scheduler.at(delay_ms + fired.between(1, 500), self._create)

    def _delete(self) -> None:
        if self._world.kafka.topic is not None:
            self._world.kafka.delete()

    def _create(self) -> None:
        if self._world.kafka.topic is None:
            self._world.kafka.create()

    # Micro-batches

    _writer: ConfluentRecordWriter | None = None

    def _write_batch(self, values: Sequence[bytes]) -> bool:
        self._writer = self._writer or ConfluentRecordWriter(_options())
        try:
            for some in (values[:1], values[1:]):
                if some:
                    self._writer.write(self._arrow(some), TOPIC)
                    self._world.scheduler.sleep(self._world.decisions.between(ME, 1, _TURN_MS))
            delivered = self._writer.flush()
        except PysparkKafkaError as error:
            self._check_error(error)
            self._close()
            return False
        self._check_delivered(values)
        if delivered.records != len(values):
            raise ViolationError("counted", f"{delivered} of {len(values)}")
        return True

    # A continuous query

    _sink: AtLeastOnceSink | None = None

    def _write_continuously(self, values: Sequence[bytes]) -> bool:
        first = self._written
        acknowledged = first
        try:
            if self._sink is None:
                self._sink = AtLeastOnceSink(_options(), -1)
                self._sink.assign(PartitionOffsets({INPUT: first}))
            for place, value in enumerate(values):
                polled = PolledRecords(INPUT, None, first + place + 1)
                self._sink.write(polled, [self._arrow([value])])
                acknowledged = self._take(acknowledged, first, values)
            while acknowledged < first + len(values):
                self._world.scheduler.sleep(self._world.decisions.between(ME, 1, _TURN_MS))
                acknowledged = self._take(acknowledged, first, values)
        except PysparkKafkaError as error:
            self._check_error(error)
            self._close()
            return False
        self._written = acknowledged
        return True

    def _take(self, before: int, first: int, values: Sequence[bytes]) -> int:
        assert self._sink is not None
        self._sink.send()
        acknowledged = self._sink.take_acknowledged().get(INPUT, before)
        self._check_delivered(values[: acknowledged - first])
        return acknowledged

    # Promises

    def _check_delivered(self, values: Sequence[bytes]) -> None:
        """Check that all records that are reported as delivered were in a log."""
        self._world.tell(ME, "delivered", values, None)
        if lost := [each for each in values if each not in self._world.kafka.appended]:
            raise ViolationError("reported as delivered, and in no log", str(lost))

    def _check_error(self, error: PysparkKafkaError) -> None:
        self._world.tell(ME, "fails", "", error)
        if WITHOUT_OFFSET in str(error) and not self._is_explained():
            raise ViolationError("untrue: without an offset", str(error))

    def _is_explained(self) -> bool:
        """Return whether a record without an offset may be missing."""
        kafka = self._world.kafka
        return kafka.was_deleted or kafka.has_failed_first

    def _arrow(self, values: Sequence[bytes]) -> pa.RecordBatch:
        partitions = [hash_of(each) % self._world.settings.partitions for each in values]
        columns: dict[str, Any] = {
            "value": pa.array(values, pa.binary()),
            "partition": pa.array(partitions, pa.int32()),
        }
        return pa.RecordBatch.from_pydict(columns)

    def _close(self) -> None:
        for each in (self._writer, self._sink):
            if each is not None:
                each.close()
        self._writer = self._sink = None


def hash_of(value: bytes) -> int:
    """Return a number that does not differ between processes."""
    return sum(value)
