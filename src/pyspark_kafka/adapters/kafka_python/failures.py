"""kafka-python's errors, as this library's."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar, final

from kafka import errors as kafka_errors

from ...domain.cluster.refusal import Refusals
from ...domain.errors import (
    BrokerUnreachableError,
    InvalidResponseError,
    KafkaRequestError,
    LeaderUnavailableError,
    PysparkKafkaError,
)
from ...domain.security.errors import (
    AuthenticationError,
    AuthorizationError,
    TlsError,
    TlsFailure,
    tls_failure,
)
from ...domain.security.rights import ResourceType
from ...domain.security.scram import ScramError
from ...domain.writing.batch import Failure, ProduceError
from ...ports.clock import still_waiting
from ..call_deadline import within
from .responses import TlsExpectedError
from .sockets import HANGUPS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from contextlib import AbstractContextManager

    from ...domain.security.rights import Right
    from ...ports.clock import Deadline

T = TypeVar("T")

RETRIABLE_ERRORS: Final = (
    OSError,
    kafka_errors.RetriableError,
    kafka_errors.KafkaProtocolError,
    # The metadata no longer name it.
    kafka_errors.UnknownBrokerIdError,
)
"""Lost connections, changes of leaders, and other errors that may pass."""

_TIMED_OUT: Final = (kafka_errors.KafkaTimeoutError, BrokerUnreachableError)

_PRODUCE_ERRORS: Final[Mapping[type[Exception], ProduceError]] = {
    kafka_errors.DuplicateSequenceNumberError: ProduceError.DUPLICATE_SEQUENCE,
    kafka_errors.MessageSizeTooLargeError: ProduceError.MESSAGE_TOO_LARGE,
    kafka_errors.RecordListTooLargeError: ProduceError.MESSAGE_TOO_LARGE,
    kafka_errors.InvalidTimestampError: ProduceError.INVALID_TIMESTAMP,
    kafka_errors.ProducerFencedError: ProduceError.PRODUCER_FENCED,
    kafka_errors.InvalidProducerEpochError: ProduceError.INVALID_PRODUCER_EPOCH,
    kafka_errors.OutOfOrderSequenceNumberError: ProduceError.SEQUENCE_LOST,
    kafka_errors.UnknownProducerIdError: ProduceError.SEQUENCE_LOST,
    kafka_errors.InvalidProducerIdMappingError: ProduceError.SEQUENCE_LOST,
    kafka_errors.TopicAuthorizationFailedError: ProduceError.TOPIC_AUTHORIZATION_FAILED,
    kafka_errors.ClusterAuthorizationFailedError: ProduceError.CLUSTER_AUTHORIZATION_FAILED,
    kafka_errors.TransactionalIdAuthorizationFailedError: (
        ProduceError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    ),
    OSError: ProduceError.DISCONNECTED,
    kafka_errors.KafkaConnectionError: ProduceError.DISCONNECTED,
    **dict.fromkeys(RETRIABLE_ERRORS[1:], ProduceError.RETRIABLE),
}

UNREACHABLE: Final = (
    kafka_errors.KafkaTimeoutError,
    kafka_errors.KafkaConnectionError,
    kafka_errors.NodeNotReadyError,
    kafka_errors.MetadataEmptyBrokerList,
)

_LEADER_ERRORS: Final = (
    kafka_errors.UnknownBrokerIdError,
    kafka_errors.LeaderNotAvailableError,
    kafka_errors.ListenerNotFoundError,
)

_LOGIN_ERRORS: Final = (
    ScramError,
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.IllegalSaslStateError,
)

_RESOURCES: Final[Mapping[type[Exception], ResourceType]] = {
    kafka_errors.TopicAuthorizationFailedError: ResourceType.TOPIC,
    kafka_errors.GroupAuthorizationFailedError: ResourceType.GROUP,
    kafka_errors.TransactionalIdAuthorizationFailedError: ResourceType.TRANSACTIONAL_ID,
    kafka_errors.ClusterAuthorizationFailedError: ResourceType.CLUSTER,
}


@final
class RefusedError(kafka_errors.KafkaError):  # type: ignore[misc]  # kafka-python has no types
    """Carries an error of this library to where kafka-python's are mapped; nothing retries it.

    The error itself is an ``OSError``, as a lost connection is.
    """

    def __init__(self, error: PysparkKafkaError) -> None:
        super().__init__(error.condition)
        self.error = error


@final
@dataclass(frozen=True, slots=True)
class ErrorMapper:
    """Maps kafka-python's errors, with the cluster, the timeout and the user that they name.

    ``refusals`` are shared by all connections of an adapter.
    """

    bootstrap_servers: str
    timeout_ms: int
    mechanism: str = ""
    user: str = ""
    principal: str | None = None
    refusals: Refusals = field(default_factory=Refusals, compare=False)

    def one_deadline(self, seconds: float | None = None) -> AbstractContextManager[Deadline]:
        """Limit all waits of a block together to ``timeout_ms``, or to fewer seconds."""
        timeout_s = self.timeout_ms / 1_000
        return within(timeout_s if seconds is None else min(timeout_s, seconds))

    @contextmanager
    def mapped_errors(self, request: str, *rights: Right) -> Iterator[None]:
        """Raise kafka-python's errors of ``request`` as this library's.

        ``rights`` are all that the request needs; an error names those on resources of the type
        that the broker refused.
        """
        try:
            yield
        except RefusedError as error:
            raise error.error.with_traceback(None) from error
        except UNREACHABLE as error:
            raise BrokerUnreachableError(
                self.bootstrap_servers, self.timeout_ms / 1_000, reason_of(error)
            ) from error
        except kafka_errors.KafkaError as error:
            raise self.request_error(request, error, rights) from error

    @contextmanager
    def one_call(self, request: str, *rights: Right) -> Iterator[Deadline]:
        """Limit a block as ``one_deadline``, and raise its errors as ``mapped_errors``."""
        with self.mapped_errors(request, *rights), self.one_deadline() as deadline:
            yield deadline

    def request_error(
        self,
        request: str,
        error: kafka_errors.KafkaError | type[kafka_errors.KafkaError],
        rights: Collection[Right],
    ) -> PysparkKafkaError:
        """Return the error of a request, as ``mapped_errors`` raises it."""
        kind = error if isinstance(error, type) else type(error)
        resource = _RESOURCES.get(kind)
        # Write on any topic replaces the right on the cluster.
        missing = [right for right in rights if resource in (right.resource, ResourceType.CLUSTER)]
        if missing:
            return AuthorizationError(request, missing, self.bootstrap_servers, self.principal)
        if issubclass(kind, kafka_errors.KafkaProtocolError):
            problem = error.__name__ if isinstance(error, type) else reason_of(error)
            return InvalidResponseError(request, problem)
        if issubclass(kind, _LEADER_ERRORS):
            reason = _description(kind) if isinstance(error, type) else reason_of(error)
            return LeaderUnavailableError(request, reason)
        return KafkaRequestError(request, error.__name__ if error is kind else str(error))

    def refused(self, error: Exception) -> PysparkKafkaError | None:
        """Return the reason of a failed connection if another one would fail too, else ``None``."""
        if isinstance(error, RefusedError):
            return error.error
        if isinstance(error, PysparkKafkaError):
            return error
        if isinstance(error, TlsExpectedError):
            reason = "the listener answers with an alert of TLS"
            return TlsError(self.bootstrap_servers, TlsFailure.TLS_EXPECTED, reason)
        is_passing = isinstance(error, OSError | kafka_errors.KafkaError)
        if isinstance(error, _LOGIN_ERRORS) or (self.mechanism and not is_passing):
            # An error of neither the broker nor the network is the mechanism's own.
            return AuthenticationError(
                self.bootstrap_servers, self.mechanism, self.user, reason_of(error)
            )
        failure = None if is_hangup(error) else tls_failure(reason_of(error))
        return failure and TlsError(self.bootstrap_servers, failure, reason_of(error))

    def retry(self, call: Callable[[], T], pause_s: float) -> T:
        """Return a call's result, repeating the call while its errors may pass and time remains."""
        reason: Exception | None = None
        with self.one_deadline() as deadline:
            while True:
                try:
                    return call()
                except RETRIABLE_ERRORS as error:
                    # The error of an attempt that the deadline cuts short explains less than the
                    # one before.
                    if reason is None or not isinstance(error, _TIMED_OUT):
                        reason = error
                still_waiting()
                if deadline.remaining < pause_s:
                    raise reason
                time.sleep(pause_s)


def class_of(error: type[Exception], classes: Mapping[type[Exception], T]) -> T | None:
    """Return a mapping's value for an error's class, or for the nearest of its bases."""
    return next((classes[base] for base in error.__mro__ if base in classes), None)


def failure_of(error: type[Exception], message: str) -> Failure:
    """Return an error as a producer acts on it, with Kafka's description if there is no message."""
    return Failure(
        class_of(error, _PRODUCE_ERRORS) or ProduceError.FATAL, message or _description(error)
    )


def reason_of(error: Exception) -> str:
    """Return the text of an error, without the names of kafka-python's classes."""
    if isinstance(error, kafka_errors.UnknownBrokerIdError):
        return f"the metadata name broker {error.args[0]}, and no address of it"
    said = "; ".join(map(str, error.args)).removeprefix("SaslAuthenticationFailedError: ")
    return said or _description(type(error))


def _description(kind: type[Exception]) -> str:
    described: str | None = getattr(kind, "description", None)
    return described or kind.__name__


def is_hangup(error: Exception) -> bool:
    """Return whether the broker hung up in the middle of a handshake: it may be ending."""
    return isinstance(error.__cause__, HANGUPS)
