"""Fakes of kafka-python's parts that adapters use, without a broker."""

import math
import socket
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock
from uuid import UUID

from kafka import errors as kafka_errors
from kafka.protocol.broker_version_data import BrokerVersionData

from pyspark_kafka.adapters.kafka_python.connections import Opened, ReceiveBuffer
from pyspark_kafka.adapters.kafka_python.wire import FetchedData, FetchPosition, FetchResponse
from pyspark_kafka.domain.cluster.cluster_view import Leadership
from pyspark_kafka.domain.topic_partition import TopicPartition

NODE = 7


def opened(ours: socket.socket, expires_at: float = math.inf) -> Opened:
    """Return a connection to a broker of Kafka 4.0."""
    return Opened(ours, f"broker {NODE} at host:9092", BrokerVersionData((4, 0)), expires_at)


def metadata_of(
    leader: Callable[[TopicPartition], int | None],
    topic_id: Callable[[str], UUID | None] = lambda _: None,
) -> Any:
    """Return a ``ClusterMetadata`` that knows leaders, and cannot connect to them now."""
    return Mock(
        leader=leader,
        view=Mock(
            leadership=lambda partition: Leadership(leader(partition)),
            is_leaderless=lambda partition: leader(partition) is None,
            topic_id=topic_id,
        ),
        connect=Mock(side_effect=kafka_errors.NodeNotReadyError("it ended")),
        is_outdated=False,
    )


@dataclass
class FakeConnection:
    """Is a ``FetchConnection`` of a broker that takes ids; its broker answers from a script."""

    answers: deque[FetchedData] = field(default_factory=deque)
    error: Exception | None = None
    asks_by_id: bool = False
    ready: socket.socket | None = None
    in_flight: Mapping[TopicPartition, FetchPosition] | None = None
    is_closed: bool = False
    asked: list[tuple[int, int]] = field(default_factory=list)
    racks: list[bool] = field(default_factory=list)
    """Whether each request named the reader's rack."""

    compares_epochs = True
    is_overdue = is_stale = has_decrypted = False
    seconds_left = math.inf

    def fileno(self) -> int:
        assert self.ready is not None
        return self.ready.fileno()

    def send(self, positions: Mapping[TopicPartition, FetchPosition], *, with_rack: bool) -> None:
        self.racks.append(with_rack)
        if self.error is not None:
            raise self.error
        self.in_flight = positions
        self.asked += [(each.offset, each.last_epoch) for each in positions.values()]

    def receive(self, _: ReceiveBuffer) -> FetchResponse:
        assert self.in_flight is not None
        [partition] = self.in_flight
        self.in_flight = None
        return FetchResponse(kafka_errors.NoError, 0.0, {partition: self.answers.popleft()})

    def close(self) -> None:
        self.is_closed = True
