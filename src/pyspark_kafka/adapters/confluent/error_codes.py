"""The codes of librdkafka's errors, and their meaning for a request."""

# ruff: noqa: SLF001  # the codes of librdkafka's own errors begin with an underscore

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from confluent_kafka import KafkaError

from ...domain.security.rights import ResourceType

ALL_BROKERS_DOWN: Final[int] = KafkaError._ALL_BROKERS_DOWN
PARTITION_EOF: Final[int] = KafkaError._PARTITION_EOF

QUEUE_FULL: Final[int] = KafkaError._QUEUE_FULL
FATAL: Final[int] = KafkaError._FATAL
TIMED_OUT: Final[int] = KafkaError._TIMED_OUT
NO_COORDINATOR: Final[int] = KafkaError._WAIT_COORD
MESSAGE_TIMED_OUT: Final[int] = KafkaError._MSG_TIMED_OUT
MESSAGE_TOO_LARGE: Final[int] = KafkaError.MSG_SIZE_TOO_LARGE
INVALID_TIMESTAMP: Final[int] = KafkaError.INVALID_TIMESTAMP
ANOTHER_INVALID_RECORD: Final[int] = KafkaError._INVALID_DIFFERENT_RECORD
"""A record is fine, and another one of its batch was rejected."""

REJECTED_ERRORS: Final = frozenset({KafkaError.INVALID_RECORD, ANOTHER_INVALID_RECORD})
"""A broker rejected a record by a rule of its topic."""
UNKNOWN_PARTITION: Final[int] = KafkaError._UNKNOWN_PARTITION

REMOVED_PARTITION_ERRORS: Final = frozenset({UNKNOWN_PARTITION, KafkaError._DESTROY})
"""A record's partition has gone: librdkafka may end it with records that are still queued
(``rd_kafka_toppar_destroy_final``)."""

UNREACHABLE_ERRORS: Final = frozenset(
    {
        ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        TIMED_OUT,
        KafkaError._RESOLVE,
        # A request was in flight when the connection was lost.
        KafkaError._DESTROY,
        NO_COORDINATOR,
    }
)

UNKNOWN_TOPIC_ERRORS: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}
)

UNKNOWN_PARTITION_ERRORS: Final = UNKNOWN_TOPIC_ERRORS | {UNKNOWN_PARTITION}

OUT_OF_RANGE_ERRORS: Final = frozenset(
    {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}
)

INVALID_RESPONSE_ERRORS: Final = frozenset({KafkaError._UNDERFLOW, KafkaError._BAD_MSG})
"""librdkafka cannot read a response, or the response has values that no response may have."""

BAD_COMPRESSION: Final = KafkaError._BAD_COMPRESSION
"""A record batch cannot be decompressed, or becomes too large."""

CORRUPT_ERRORS: Final = frozenset({KafkaError._BAD_MSG, BAD_COMPRESSION, KafkaError.INVALID_MSG})
"""A record batch cannot be read: by librdkafka, or (``CORRUPT_MESSAGE``) by its broker."""

LOGIN_ERRORS: Final = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.ILLEGAL_SASL_STATE,
    }
)

TLS_FAILED: Final[int] = KafkaError._SSL

REFUSED_RESOURCES: Final[Mapping[int, ResourceType]] = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: ResourceType.TOPIC,
    KafkaError.GROUP_AUTHORIZATION_FAILED: ResourceType.GROUP,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ResourceType.TRANSACTIONAL_ID,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: ResourceType.CLUSTER,
}
"""The resource type whose authorization failed, by broker error."""

NO_LEADERS: Final[int] = KafkaError._NOENT
"""None of the partitions of a request has a leader, perhaps because none exists."""

LEADER_ERRORS: Final = frozenset(
    {NO_LEADERS, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.LISTENER_NOT_FOUND}
)

COORDINATOR_ERRORS: Final = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)

LIST_OFFSETS_RETRIABLE_ERRORS: Final = UNREACHABLE_ERRORS | {
    NO_LEADERS,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.REQUEST_TIMED_OUT,
}
"""Another broker may succeed."""

METADATA_RETRIABLE_ERRORS: Final = (
    UNREACHABLE_ERRORS | UNKNOWN_TOPIC_ERRORS | {KafkaError.LEADER_NOT_AVAILABLE}
)
"""A topic may be about to be created."""

NOT_SERVING_ERRORS: Final = UNKNOWN_TOPIC_ERRORS | {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
}
"""The leader of a partition does not serve it yet."""

PURGED_ERRORS: Final = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
"""librdkafka dropped a record before it was sent, or while it was."""
