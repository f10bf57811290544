"""Produce requests and responses.

kafka-python's own ``ProduceRequest`` copies record batches several times on their way.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from kafka import errors as kafka_errors
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from ...domain.topic_partition import TopicPartition
from .failures import failure_of
from .responses import reading, unique
from .wire_text import encode_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.writing.requests import Failure

MIN_VERSION: Final = 3
"""The first version with record batches of format 2, and the oldest that Kafka 4 speaks."""

MAX_VERSION: Final = 8
"""The last version without compact fields, and the first with errors of single records."""

_ZSTD_VERSION: Final = 7
_PRODUCE: Final = 0


@final
@dataclass(frozen=True, slots=True)
class ProduceSettings:
    """The fields that are the same in every request of a writer."""

    client_id: str
    acks: int
    timeout_ms: int
    needs_zstd: bool

    def version(self, broker: Any) -> int:
        """Return the newest version of the request that a broker and this library support.

        :raises IncompatibleBrokerVersion: if there is none.
        """
        min_version = _ZSTD_VERSION if self.needs_zstd else MIN_VERSION
        version: int = broker.api_version(
            ProduceRequest, min_version=min_version, max_version=MAX_VERSION
        )
        return version

    def request(
        self,
        batches: Mapping[TopicPartition, bytes],
        transactional_id: str | None,
        *,
        version: int,
        correlation_id: int,
    ) -> bytes:
        """Return the bytes of a request with one batch for each partition."""
        by_topic: dict[str, list[tuple[int, bytes]]] = {}
        for partition, records in batches.items():
            by_topic.setdefault(partition.topic, []).append((partition.partition, records))
        parts = [
            struct.pack(">hhi", _PRODUCE, version, correlation_id),
            encode_text(self.client_id),
            encode_text(transactional_id),
            struct.pack(">hii", self.acks, self.timeout_ms, len(by_topic)),
        ]
        for topic, partitions in by_topic.items():
            parts += [encode_text(topic), struct.pack(">i", len(partitions))]
            for number, records in partitions:
                parts += [struct.pack(">ii", number, len(records)), records]
        size = sum(map(len, parts))
        return b"".join((struct.pack(">i", size), *parts))


def responses_of(
    frame: memoryview, version: int, correlation_id: int
) -> dict[TopicPartition, Failure | None]:
    """Read a response's frame, without its length, and return what failed for each partition.

    :raises KafkaProtocolError: if it is not the response to that request.
    """
    with reading():
        (answered,) = struct.unpack_from(">i", frame)
        if answered != correlation_id:
            raise kafka_errors.CorrelationIdError(f"{answered} answers {correlation_id}")
        response = ProduceResponse.decode(bytes(frame[4:]), version=version)
        return unique(
            (TopicPartition(topic.name, partition.index), _failure(partition))
            for topic in response.responses
            for partition in topic.partition_responses
        )


def _failure(answered: Any) -> Failure | None:
    if not answered.error_code:
        return None
    # What is said of a record tells more: of a timestamp, the range that it should be in.
    messages = [error.batch_index_error_message for error in answered.record_errors or ()]
    messages.append(answered.error_message)
    return failure_of(kafka_errors.for_code(answered.error_code), next(filter(None, messages), ""))
