"""Committing offsets for a consumer group without joining it."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any, Final, final

from confluent_kafka import Consumer, KafkaError

from .client_closing import close_in_time
from .cluster_settings import number_of
from .error_codes import NO_COORDINATOR, REFUSED_RESOURCES, TIMED_OUT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from confluent_kafka import TopicPartition

    from ...ports.clock import Deadline
    from .cluster import Cluster
    from .cluster_settings import ClusterSettings

_POLL_S: Final = 0.05
_CLOSE_S: Final = 0.5
"""How long closing may take after the caller's deadline; it usually takes milliseconds."""

_COORDINATOR_WAIT_MS: Final = 1_000
"""How long librdkafka delays a commit without a coordinator; closing waits for that."""

_ATTEMPTS: Final = 3
"""How often librdkafka sends a commit; closing waits for all of them."""

_MIN_REQUEST_MS: Final = 1_000
_MAX_REQUEST_MS: Final = 60_000
"""librdkafka's default of ``socket.timeout.ms``."""


@final
class GroupCommitter:
    """A consumer of a group, without subscription and assignment.

    The admin client's request aborts the process if the connection to the coordinator is lost
    before the request is sent (confluentinc/librdkafka#5397); a consumer's does not. After an error
    or a time-out, close the committer: a late answer would be taken for the next commit's.
    """

    def __init__(self, cluster: Cluster, group_id: str) -> None:
        """Create the consumer; it connects by itself.

        :raises PysparkKafkaError: as ``Cluster.make``.
        """
        self._errors = cluster.errors
        self._answers: list[KafkaError | None] = []
        settings = {
            "group.id": group_id,
            "enable.auto.commit": "false",
            # rd_kafka_cgrp_defer_offset_commit; there is no session, as no group is joined.
            "session.timeout.ms": str(_COORDINATOR_WAIT_MS),
            "socket.timeout.ms": str(_request_ms(cluster.settings)),
            "fetch.wait.max.ms": "0",  # nothing is fetched; it must be well below the former
        }
        self._consumer = cluster.make(self._consumer_of, settings)

    def commit(self, offsets: Sequence[TopicPartition], deadline: Deadline) -> KafkaError | None:
        """Commit offsets, and return the coordinator's error.

        :raises AuthenticationError: if the login is refused.
        :raises TlsError: if the TLS handshake fails.
        """
        while True:
            error = self._commit_once(offsets, deadline)
            if error is None or error.code() != NO_COORDINATOR or deadline.has_passed:
                return error

    def _commit_once(
        self, offsets: Sequence[TopicPartition], deadline: Deadline
    ) -> KafkaError | None:
        self._answers.clear()
        self._consumer.commit(offsets=list(offsets), asynchronous=True)
        while not self._answers:
            if deadline.has_passed:
                return KafkaError(TIMED_OUT)
            message = self._consumer.poll(min(_POLL_S, deadline.remaining))
            self._errors.raise_refusal()
            # If the user may not ask for the coordinator, an event reports that, and no answer
            # comes.
            if message is not None and message.error().code() in REFUSED_RESOURCES:
                refusal: KafkaError = message.error()
                return refusal
        return self._answers[0]

    def poll(self, seconds: float) -> None:
        """Handle the events of so many seconds, and those since the last commit."""
        self._consumer.poll(seconds)

    def close(self, max_s: float = math.inf) -> None:
        """Close the connections, in the background if that takes longer than the caller may wait.

        librdkafka waits until a commit that is not answered has failed, and logs nothing meanwhile.
        """
        self._log.disabled = True
        close_in_time(self._consumer.close, max_s=max(_CLOSE_S, max_s))

    def _consumer_of(self, config: Mapping[str, Any], logger: logging.Logger) -> Any:
        # A separate logger, to be silenced while the consumer is closed in the background.
        self._log = logging.Logger(logger.name)  # noqa: LOG001  # no other one has it
        self._log.parent = logger
        return Consumer({**config, "on_commit": self._take_answer}, logger=self._log)

    def _take_answer(self, error: KafkaError | None, partitions: Sequence[TopicPartition]) -> None:
        refused = (partition.error for partition in partitions if partition.error)
        self._answers.append(error or next(refused, None))


def _request_ms(settings: ClusterSettings) -> int:
    """Return how long each attempt may take, so that all take as long as a call at most."""
    wanted = number_of(settings.config({}, {}), "socket.timeout.ms", _MAX_REQUEST_MS)
    return max(_MIN_REQUEST_MS, min(wanted, int(1_000 * settings.timeout_s) // _ATTEMPTS))
