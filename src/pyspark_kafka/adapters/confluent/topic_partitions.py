"""How many partitions topics have, kept for as long as metadata may be old."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, final

from confluent_kafka import KafkaError, KafkaException

from ...domain.errors import BrokerUnreachableError, UnknownTopicError
from .connection import UNREACHABLE
from .delivery_errors import UNKNOWN_TOPIC

if TYPE_CHECKING:
    from .connection import Connection

_WAIT_S: Final = 0.05
"""How long to wait before a topic is asked for again that is not there, or has no leader yet."""

_PASSING: Final = UNREACHABLE | UNKNOWN_TOPIC | {KafkaError.LEADER_NOT_AVAILABLE}


class MetadataClient(Protocol):
    """A client that can be asked for a topic."""

    def partitions(self, topic: str, timeout_s: float) -> int:
        """Ask a broker how many partitions a topic has.

        :raises KafkaException: if there is no answer, or it is an error.
        """

    def wait(self, seconds: float) -> None:
        """Serve what librdkafka has to say, for that long at the most."""


@final
@dataclass(frozen=True, slots=True)
class _Known:
    count: int
    until: float


@final
class TopicPartitions:
    """What is known of topics.

    An answer is waited for as Java's producer does it, for ``max.block.ms``: a topic may be about
    to be created.
    """

    def __init__(self, connection: Connection, max_block_s: float, max_age_s: float) -> None:
        self._connection = connection
        self._max_block_s = max_block_s
        self._max_age_s = max_age_s
        self._known: dict[str, _Known] = {}

    def count(self, client: MetadataClient, topic: str, *, anew: bool = False) -> int:
        """Give the number of partitions of a topic.

        :raises UnknownTopicError: if it does not exist, and does not come to.
        :raises BrokerUnreachableError: if no broker answers, and none has before.
        :raises KafkaRequestError: if the cluster refuses.
        """
        known = self._known.get(topic)
        if known is None or anew or time.monotonic() > known.until:
            try:
                count = self._asked(client, topic)
            except BrokerUnreachableError:
                if known is None:
                    raise
                # Records wait for a broker as well, for longer.
                count = known.count
            known = _Known(count, time.monotonic() + self._max_age_s)
            self._known[topic] = known
        return known.count

    def _asked(self, client: MetadataClient, topic: str) -> int:
        deadline = time.monotonic() + self._max_block_s
        reason: KafkaError | None = None
        while True:
            left = deadline - time.monotonic()
            try:
                return client.partitions(topic, max(0.001, left))
            except KafkaException as error:
                client.wait(0)  # which says why it could not connect
                # What a broker said stands above the want of an answer, for which time ran out.
                if reason is None or error.args[0].code() not in UNREACHABLE:
                    reason = error.args[0]
            if reason.code() not in _PASSING or time.monotonic() + _WAIT_S > deadline:
                raise self._error(topic, reason)
            client.wait(_WAIT_S)

    def _error(self, topic: str, error: KafkaError) -> Exception:
        connection = self._connection
        if error.code() in UNKNOWN_TOPIC:
            return UnknownTopicError([topic], "topic", connection.bootstrap_servers)
        if error.code() in UNREACHABLE:
            cause = connection.last_error or error.str()
            return BrokerUnreachableError(connection.bootstrap_servers, self._max_block_s, cause)
        return connection.error(f"a request for metadata of '{topic}'", error)
