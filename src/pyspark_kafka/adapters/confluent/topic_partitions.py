"""The number of partitions of topics, cached for ``metadata.max.age.ms``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, final

from confluent_kafka import KafkaException

from ...domain.errors import BrokerUnreachableError
from ...domain.security.rights import Operation, topic_right
from ...ports.clock import Deadline
from ..partitioning.row_partitioner import TopicWait
from .error_codes import METADATA_RETRIABLE_ERRORS, UNKNOWN_TOPIC_ERRORS, UNREACHABLE_ERRORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import KafkaError

    from .cluster_errors import ClusterErrors

_WAIT_S: Final = 0.05
"""How long to wait before asking again for a topic that does not exist or has no leader yet."""


class MetadataClient(Protocol):
    """A client that fetches the metadata of a topic."""

    def partitions(self, topic: str, timeout_s: float) -> int:
        """Return the number of partitions of a topic, from a broker.

        :raises KafkaException: if there is no response, or it is an error.
        """

    def wait(self, seconds: float) -> None:
        """Handle librdkafka's events for so long at most.

        :raises AuthenticationError: if a broker refuses the login: it was changed.
        :raises TlsError: if a TLS handshake fails.
        """


@final
@dataclass(frozen=True, slots=True)
class _CachedCount:
    count: int
    expires: Deadline


@final
class TopicPartitions:
    """The cached number of partitions of topics.

    Like Java's producer, ``count`` waits for ``max.block.ms``: a topic may be about to be created.
    """

    def __init__(self, errors: ClusterErrors, max_block_s: float, max_age_s: float) -> None:
        self._errors = errors
        self._max_block_s = max_block_s
        self._max_age_s = max_age_s
        self._cache: dict[str, _CachedCount] = {}

    def counts(
        self, client: MetadataClient, topics: Sequence[str], *, refresh: bool = False
    ) -> list[int]:
        """Return the number of partitions of each topic; raises as ``count``."""
        return [self.count(client, topic, refresh=refresh) for topic in topics]

    def count(self, client: MetadataClient, topic: str, *, refresh: bool = False) -> int:
        """Return the number of partitions of a topic.

        :raises UnknownTopicError: if it does not exist, and is not created in time.
        :raises BrokerUnreachableError: if no broker responds, and none has responded before.
        :raises KafkaRequestError: if the cluster refuses the request.
        """
        cached = self._cache.get(topic)
        if cached is None or refresh or cached.expires.has_passed:
            try:
                count = self._fetch(client, topic)
            except BrokerUnreachableError:
                if cached is None:
                    raise
                # Records wait for a broker as well, for longer.
                count = cached.count
            cached = _CachedCount(count, Deadline.after(self._max_age_s))
            self._cache[topic] = cached
        return cached.count

    def _fetch(self, client: MetadataClient, topic: str) -> int:
        wait = TopicWait(topic, self._max_block_s)
        reason: KafkaError | None = None
        while True:
            try:
                return client.partitions(topic, max(0.001, wait.deadline.remaining))
            except KafkaException as error:
                client.wait(0)  # for the event with the reason why it could not connect
                # A broker's error explains more than the time-out of the last attempt.
                if reason is None or error.args[0].code() not in UNREACHABLE_ERRORS:
                    reason = error.args[0]
            if reason.code() not in METADATA_RETRIABLE_ERRORS or wait.deadline.remaining < _WAIT_S:
                raise self._error(topic, reason)
            if reason.code() in UNKNOWN_TOPIC_ERRORS:
                wait.topic_unknown()
            client.wait(_WAIT_S)

    def _error(self, topic: str, error: KafkaError) -> Exception:
        if error.code() in UNKNOWN_TOPIC_ERRORS:
            return self._errors.unknown_topic(topic)
        if error.code() in UNREACHABLE_ERRORS:
            return self._errors.unreachable(error.str(), self._max_block_s)
        right = topic_right(Operation.WRITE, topic)
        return self._errors.error(f"a request for metadata of '{topic}'", error, right)
