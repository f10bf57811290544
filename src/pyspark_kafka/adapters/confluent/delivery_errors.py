"""The errors for records that librdkafka or a broker refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import KafkaRequestError
from ...domain.security.rights import IDEMPOTENT_WRITE, Operation, topic_right
from ...domain.writing.batch import MESSAGE_TOO_LARGE as TOO_LARGE_FOR_BROKER
from ...domain.writing.errors import (
    InvalidTimestampError,
    RecordDeliveryError,
    RecordTooLargeError,
    RejectedRecordError,
)
from .error_codes import (
    ANOTHER_INVALID_RECORD,
    FATAL,
    INVALID_TIMESTAMP,
    MESSAGE_TIMED_OUT,
    MESSAGE_TOO_LARGE,
    REJECTED_ERRORS,
    REMOVED_PARTITION_ERRORS,
    UNKNOWN_TOPIC_ERRORS,
)
from .producer_config import MESSAGE_MAX_BYTES

if TYPE_CHECKING:
    from .cluster_errors import ClusterErrors

WITHOUT_OFFSET: Final = (
    "it was acknowledged without an offset, so it may be missing or in Kafka already. Either its "
    "topic was deleted and recreated, or an earlier attempt reached a new leader too early, or "
    "its replicas were too slow to confirm it"
)
"""Why a record counts as not delivered although librdkafka reports no error for it."""

_BATCH_INSTEAD: Final = (
    " It may be the batch that it was sent in, which the client 'confluent' does not split. Set "
    "'kafka.batch.size' to less than the topic's max.message.bytes, or use the client "
    "'kafka-python'"
)


@final
@dataclass(frozen=True, slots=True)
class Undelivered:
    """A record that was not delivered, with librdkafka's error code and message.

    ``size`` is the bytes of key, value and headers.
    """

    topic: str
    partition: int
    size: int
    code: int
    reason: str


def to_report(first: Undelivered | None, later: Undelivered) -> Undelivered:
    """Return the record to report: the first that was rejected itself.

    In a batch that is too large, it is the largest record.
    """
    if first is None or first.code == ANOTHER_INVALID_RECORD:
        return later
    is_larger = first.code == later.code == MESSAGE_TOO_LARGE and later.size > first.size
    return later if is_larger else first


def delivery_error(errors: ClusterErrors, record: Undelivered) -> Exception:
    """Return the error for a record that was queued and failed later."""
    if record.code in UNKNOWN_TOPIC_ERRORS:
        return errors.unknown_topic(record.topic)
    rights = (topic_right(Operation.WRITE, record.topic), IDEMPOTENT_WRITE)
    missing = errors.authorization_error("a request to produce", record.code, rights)
    if missing is not None:
        return missing
    facts = (record.topic, _known(record.partition), record.size)
    if record.code == MESSAGE_TOO_LARGE:
        return RecordTooLargeError(*facts, TOO_LARGE_FOR_BROKER + _BATCH_INSTEAD)
    if record.code == INVALID_TIMESTAMP:
        return InvalidTimestampError(*facts, record.reason)
    if record.code in REJECTED_ERRORS:
        return RejectedRecordError(*facts, record.reason)
    reason = record.reason
    if record.code in REMOVED_PARTITION_ERRORS:  # it existed when the metadata were fetched
        reason = f"{reason}: the topic was deleted, and maybe recreated"
    if record.code == MESSAGE_TIMED_OUT and errors.last_error:
        reason = f"{reason} ({errors.last_error})"
    return RecordDeliveryError(*facts, reason)


def produce_error(errors: ClusterErrors, record: Undelivered) -> Exception:
    """Return the error for a record that librdkafka refused to queue."""
    if record.code == FATAL:
        return KafkaRequestError("a request to produce", record.reason)
    if record.code == MESSAGE_TOO_LARGE:
        return RecordTooLargeError(
            record.topic,
            _known(record.partition),
            record.size,
            f"{record.reason}: it is larger than the value of {MESSAGE_MAX_BYTES}",
        )
    return delivery_error(errors, record)


def _known(partition: int) -> int | None:
    return partition if partition >= 0 else None
