"""librdkafka's admin client with requests for the offsets of many partitions."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Protocol, TypeAlias, final

from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import IsolationLevel


class ListedOffset(Protocol):
    """``ListOffsetsResultInfo``."""

    offset: int


ListedOffsets: TypeAlias = Mapping[TopicPartition, ListedOffset | KafkaError]


@final
class OffsetsAdmin(AdminClient):
    """Requests offsets with one future for all partitions of a request.

    ``AdminClient.list_offsets`` makes a future for each of them, which takes more than half of the
    processor time of a request.
    """

    def request_offsets(
        self, partitions: Sequence[TopicPartition], isolation_level: IsolationLevel, timeout: float
    ) -> Future[ListedOffsets]:
        """Request the offset of each partition; its ``offset`` is a timestamp, or -1 or -2."""
        answer: Future[ListedOffsets] = Future()
        answer.set_running_or_notify_cancel()
        super(AdminClient, self).list_offsets(  # the method in C
            list(partitions),
            answer,
            isolation_level_value=isolation_level.value,
            request_timeout=timeout,
        )
        return answer
