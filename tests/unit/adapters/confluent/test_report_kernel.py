"""Which partitions are known from the reports of an idempotent producer."""

import ctypes
from typing import Any, Final

import pytest

from pyspark_kafka.adapters.confluent.librdkafka import Message
from pyspark_kafka.adapters.confluent.report_kernel import DeliveryReports
from pyspark_kafka.domain.topic_partition import TopicPartition

ADDRESS: Final = 64
OUTPUT: Final = 7
NO_OFFSET: Final = -1001


class Library:
    """Events of records that were delivered, and the topics at each address."""

    def __init__(self) -> None:
        self.topics: dict[int, bytes] = {}
        self.named: list[int] = []
        self.events: dict[int, list[Message]] = {}
        self._kept: list[Message] = []

    def rd_kafka_event_message_array(self, event: int, address: int, most: int) -> int:
        taken, self.events[event] = self.events[event][:most], self.events[event][most:]
        self._kept += taken
        places: Any = (ctypes.c_uint64 * len(taken)).from_address(address)
        for place, message in enumerate(taken):
            places[place] = ctypes.addressof(message)
        return len(taken)

    def rd_kafka_topic_name(self, topic: int) -> bytes:
        self.named.append(topic)
        return self.topics[topic]


def delivered(partition: int, offset: int) -> Message:
    return Message(rkt=ADDRESS, partition=partition, offset=offset, private=OUTPUT)


@pytest.fixture
def library():
    return Library()


@pytest.fixture
def reports(library):
    return DeliveryReports(library, is_idempotent=True)


def take(library: Library, reports: DeliveryReports, topic: str, *messages: Message) -> int:
    """Take an event; return how many of its records have no offset."""
    library.topics[ADDRESS] = topic.encode()
    library.events[1] = list(messages)
    return len(list(reports.take(1)))


def test_a_topic_at_the_address_of_a_freed_one_is_another(library, reports):
    assert take(library, reports, "old", delivered(0, 5)) == 0
    assert take(library, reports, "new", delivered(1, 5), delivered(0, NO_OFFSET)) == 1
    assert reports.has_appended(TopicPartition("old", 0))
    assert reports.has_appended(TopicPartition("new", 1))
    assert not reports.has_appended(TopicPartition("new", 0))


def test_a_topic_is_named_once_in_an_event(library, reports):
    take(library, reports, "t", *(delivered(each % 2, each) for each in range(5_000)))
    assert library.named == [ADDRESS]
    assert reports.take_delivered() == [(OUTPUT, 5_000)]
