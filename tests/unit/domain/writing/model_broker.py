"""A cluster that keeps the rules of Kafka's ``ProducerStateManager``, in memory."""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.batch import (
    Failure,
    ProduceError,
    ProducerIdAndEpoch,
    next_sequence,
)

HEADER: Final = struct.Struct(">qhi?")
DUPLICATES_KNOWN: Final = 5
"""``ProducerStateEntry.NUM_BATCHES_TO_RETAIN``."""

Request = dict["TopicPartition", bytes]
Response = dict["TopicPartition", Failure | None]


@dataclass(frozen=True)
class Numbers:
    """Records that are numbers: ``payload_bytes`` of each are 8."""

    values: tuple[int, ...]

    @property
    def payload_bytes(self) -> int:
        return 8 * len(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def first_record_bytes(self) -> int:
        return 8

    def halves(self) -> tuple[Numbers, Numbers]:
        half = len(self.values) // 2
        return Numbers(self.values[:half]), Numbers(self.values[half:])


def encode(records: Numbers, producer: ProducerIdAndEpoch, sequence: int) -> bytes:
    header = HEADER.pack(producer.producer_id, producer.epoch, sequence, producer.is_transactional)
    return header + struct.pack(f">{len(records)}q", *records.values)


@dataclass
class ProducerState:
    epoch: int
    batches: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=DUPLICATES_KNOWN))

    @property
    def last(self) -> int:
        """The last sequence number, -1 before the first."""
        return self.batches[-1][1] if self.batches else -1


@dataclass
class Log:
    """A partition: its records, and the producers that wrote them."""

    leader: int
    max_batch_bytes: int
    records: list[int] = field(default_factory=list)
    producers: dict[int, ProducerState] = field(default_factory=dict)
    refusals: int = 0
    """The requests that are still to be refused with an error that passes."""

    def append(self, batch: bytes) -> Failure | None:
        if len(batch) > self.max_batch_bytes:
            return failure(ProduceError.MESSAGE_TOO_LARGE)
        if self.refusals:
            self.refusals -= 1
            return failure(ProduceError.RETRIABLE)
        producer_id, epoch, sequence, _ = HEADER.unpack_from(batch)
        values = struct.unpack_from(f">{(len(batch) - HEADER.size) // 8}q", batch, HEADER.size)
        state = self.producers.get(producer_id) or ProducerState(epoch)
        if epoch < state.epoch:
            return failure(ProduceError.INVALID_PRODUCER_EPOCH)
        if epoch > state.epoch:
            state = ProducerState(epoch)
        last = next_sequence(sequence, len(values) - 1)
        if (sequence, last) in state.batches:
            return failure(ProduceError.DUPLICATE_SEQUENCE)
        if sequence != next_sequence(state.last, 1):
            return failure(ProduceError.SEQUENCE_LOST)
        state.batches.append((sequence, last))
        self.producers[producer_id] = state
        self.records += values
        return None


def failure(error: ProduceError) -> Failure:
    return Failure(error, error.name)


def is_written(answer: Failure | None) -> bool:
    return answer is None or answer.error is ProduceError.DUPLICATE_SEQUENCE


@dataclass
class Connection:
    """Requests that a broker has not handled, and responses that were not read."""

    requests: deque[Request] = field(default_factory=deque)
    responses: deque[Response] = field(default_factory=deque)
    sent: deque[dict[TopicPartition, int]] = field(default_factory=deque)
    """The number of records in each batch of the requests without a response."""

    is_broken: bool = False

    def send(self, request: Request) -> None:
        self.requests.append(request)
        self.sent.append(
            {partition: (len(batch) - HEADER.size) // 8 for partition, batch in request.items()}
        )


@dataclass
class ModelCluster:
    """Brokers, their partitions, and connections of one client to them."""

    logs: dict[TopicPartition, Log]
    connections: dict[int, Connection] = field(default_factory=dict)
    down: set[int] = field(default_factory=set)
    late: dict[int, deque[Request]] = field(default_factory=dict)
    """Requests that came over connections that are closed."""

    known_leaders: dict[TopicPartition, int] = field(default_factory=dict)
    """The client's metadata."""

    def leader(self, partition: TopicPartition) -> int:
        """Return the leader as the client knows it."""
        if partition not in self.known_leaders:
            self.known_leaders = {each: log.leader for each, log in self.logs.items()}
        return self.known_leaders[partition]

    def connect(self, node: int) -> bool:
        if node not in self.connections and node not in self.down:
            self.connections[node] = Connection()
        return node in self.connections

    def handle(self, node: int) -> None:
        connection = self.connections.get(node)
        if connection is not None and connection.requests:
            connection.responses.append(self._respond(node, connection.requests.popleft()))

    def handle_late(self, node: int) -> None:
        if self.late.get(node):
            self._respond(node, self.late[node].popleft())

    def close(self, node: int) -> None:
        """Close a connection; the broker has still to handle what came over it."""
        self.late.setdefault(node, deque()).extend(self.connections.pop(node).requests)

    def break_connection(self, node: int, handled: int) -> None:
        """Lose a connection, after some of its requests were handled."""
        for _ in range(handled):
            self.handle(node)
        if node in self.connections:
            self.connections[node].is_broken = True

    def _respond(self, node: int, request: Request) -> Response:
        return {
            partition: self._append(node, partition, batch) for partition, batch in request.items()
        }

    def _append(self, node: int, partition: TopicPartition, batch: bytes) -> Failure | None:
        log = self.logs[partition]
        if log.leader != node:
            return failure(ProduceError.RETRIABLE)
        return log.append(batch)
