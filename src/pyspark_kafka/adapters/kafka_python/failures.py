"""kafka-python's errors, as this library's."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar, final

from kafka import errors as kafka_errors

from ...domain.errors import BrokerUnreachableError, KafkaRequestError
from ...domain.producer.requests import Failure, ProduceError
from ...ports.deadline import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

T = TypeVar("T")

RETRIABLE_ERRORS: Final = (
    OSError,
    kafka_errors.RetriableError,
    kafka_errors.KafkaProtocolError,
    # Metadata do not name it any more.
    kafka_errors.UnknownBrokerIdError,
)
"""Lost connections, changes of leaders, and other errors that may pass."""

_PRODUCE_ERRORS: Final[Mapping[type[Exception], ProduceError]] = {
    kafka_errors.DuplicateSequenceNumberError: ProduceError.DUPLICATE_SEQUENCE,
    kafka_errors.MessageSizeTooLargeError: ProduceError.MESSAGE_TOO_LARGE,
    kafka_errors.RecordListTooLargeError: ProduceError.MESSAGE_TOO_LARGE,
    kafka_errors.ProducerFencedError: ProduceError.PRODUCER_FENCED,
    kafka_errors.InvalidProducerEpochError: ProduceError.INVALID_PRODUCER_EPOCH,
    kafka_errors.OutOfOrderSequenceNumberError: ProduceError.SEQUENCE_LOST,
    kafka_errors.UnknownProducerIdError: ProduceError.SEQUENCE_LOST,
    kafka_errors.InvalidProducerIdMappingError: ProduceError.SEQUENCE_LOST,
    OSError: ProduceError.DISCONNECTED,
    kafka_errors.KafkaConnectionError: ProduceError.DISCONNECTED,
    **dict.fromkeys(RETRIABLE_ERRORS[1:], ProduceError.RETRIABLE),
    Exception: ProduceError.FATAL,
}

UNREACHABLE: Final = (
    kafka_errors.KafkaTimeoutError,
    kafka_errors.KafkaConnectionError,
    kafka_errors.NodeNotReadyError,
    kafka_errors.MetadataEmptyBrokerList,
)


@final
@dataclass(frozen=True, slots=True)
class ErrorMapper:
    """Maps kafka-python's errors, with the cluster and the timeout that they name."""

    bootstrap_servers: str
    timeout_ms: int

    @contextmanager
    def mapped_errors(self, request: str) -> Iterator[None]:
        """Raise kafka-python's errors of ``request`` as this library's."""
        try:
            yield
        except UNREACHABLE as error:
            cause = "; ".join(map(str, error.args)) or type(error).__name__
            raise BrokerUnreachableError(
                self.bootstrap_servers, self.timeout_ms / 1_000, cause
            ) from error
        except kafka_errors.KafkaError as error:
            raise KafkaRequestError(request, str(error)) from error

    def retry(self, call: Callable[[], T], pause_s: float) -> T:
        """Return what a call returns, repeated while its errors may pass and the time is not up."""
        deadline = Deadline.after(self.timeout_ms / 1_000)
        while True:
            try:
                return call()
            except RETRIABLE_ERRORS:
                if deadline.remaining < pause_s:
                    raise
                time.sleep(pause_s)


def failure_of(error: type[Exception], message: str) -> Failure:
    """Return an error as a producer acts on it, with Kafka's description if there is no message."""
    classes = (_PRODUCE_ERRORS[base] for base in error.__mro__ if base in _PRODUCE_ERRORS)
    description: str = getattr(error, "description", None) or error.__name__
    return Failure(next(classes), message or description)
