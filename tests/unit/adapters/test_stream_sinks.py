"""Sinks of continuous queries: what an assignment waits for, and new certificates."""

import os
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

from pyspark_kafka.adapters.confluent import stream_sinks as confluent_sinks
from pyspark_kafka.adapters.kafka_python import stream_sinks as kafka_python_sinks
from pyspark_kafka.adapters.stream_sinks import NoSink
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.ports.continuous import PolledRecords

from .options import sink_of

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Held:
    """A sink with an output of ``T0`` that is acknowledged when it was asked for so often."""

    def __init__(self, client: str, looks: int = 1_000) -> None:
        self.looks = looks
        self.client = Mock(take_delivered=self._taken, send_without_waiting=self._sent)
        self.client.flush.side_effect = AssertionError
        self.sink: Any
        if client == "confluent":
            self.sink = confluent_sinks.AtLeastOnceSink(sink_of(client), os.devnull)  # type: ignore[arg-type]
            self.sink._producer = self.client
        else:
            self.sink = kafka_python_sinks.AtLeastOnceSink(sink_of(client))
            self.sink._client = self.client
            self.client.awaited.return_value = ()
        self.output = self.sink._tracker.add(T0, 5, 1)
        self.sink._outputs = {1: self.output}

    def _is_delivered(self) -> bool:
        self.looks -= 1
        return self.looks == 0

    def _taken(self) -> list[tuple[int, int]]:
        return [(1, 1)] if self._is_delivered() else []

    def _sent(self) -> float:
        if self._is_delivered():
            self.sink._tracker.acknowledge(self.output, 1)
        return 0.0


@pytest.fixture(params=["kafka-python", "confluent"])
def client(request):
    return request.param


def test_a_new_partition_does_not_wait_for_the_outputs_of_others(client):
    held = Held(client)
    assert held.sink.assign(PartitionOffsets({T1: 0})) == {T1: 0}
    assert not held.sink.is_settled


def test_a_partition_is_not_moved_before_its_outputs_are_acknowledged(client):
    """Otherwise its new offset would be logged, and they would be lost in a crash."""
    held = Held(client, looks=3)
    assert held.sink.assign(PartitionOffsets({T0: 9})) == {T0: 9}
    assert (held.looks, held.sink.is_settled) == (0, True)
    assert held.sink.take_acknowledged() == {}


def test_outputs_of_a_renewed_producer_are_not_waited_for():
    """There are no further ones until they are acknowledged, and then it is replaced."""
    held = Held("confluent", looks=2)
    held.sink._cluster = Mock(**{"settings.is_outdated": True})
    held.sink.renew()
    assert not held.sink.takes_outputs
    for _ in range(2):
        held.client.close.assert_not_called()
        held.sink.send()
        held.sink.renew()
    held.client.close.assert_called_once_with()
    assert held.sink.takes_outputs


def test_what_has_no_sink_is_acknowledged_and_may_have_no_outputs():
    sink = NoSink()
    assert sink.assign(PartitionOffsets({T0: 7})) == {T0: 7}
    sink.write(PolledRecords(T0, None, 8), [])
    assert sink.take_acknowledged() == {T0: 8}
    with pytest.raises(ValueError, match="no sink"):
        sink.write(PolledRecords(T0, None, 9), [pa.record_batch({"value": [b"x"]})])
