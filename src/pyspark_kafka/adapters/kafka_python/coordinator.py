"""Requests of a transaction to its coordinator, which are sent without waiting."""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, final

from kafka import errors as kafka_errors

from ...domain.writing.transaction_cycle import TransactionCycle, TransactionError
from ..call_deadline import Attempts
from .connections import EncodedRequest, RequestConnection, receive_ready
from .coordinator_requests import COORDINATOR_MOVED
from .failures import RETRIABLE_ERRORS, UNREACHABLE, class_of, reason_of
from .responses import check_response
from .transactions import TransactionRequests, end_request

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from kafka.protocol.metadata import CoordinatorType

    from ...domain.security.rights import Right
    from ...domain.writing.transaction import Transaction
    from ...domain.writing.transaction_cycle import TransactionRequest
    from .connections import Awaited
    from .produce_client import ProducerFactory
    from .rows import Rows

_ABORT_S: Final = 1.0

_ERRORS: Final[Mapping[type[Exception], TransactionError]] = {
    kafka_errors.ConcurrentTransactionsError: TransactionError.CONCURRENT_TRANSACTIONS,
    kafka_errors.ProducerFencedError: TransactionError.FENCED,
    kafka_errors.InvalidProducerEpochError: TransactionError.FENCED,
    kafka_errors.InvalidProducerIdMappingError: TransactionError.FORGOTTEN,
    **dict.fromkeys(RETRIABLE_ERRORS, TransactionError.RETRIABLE),
    **dict.fromkeys((OSError, *UNREACHABLE), TransactionError.DISCONNECTED),
}


@final
class CoordinatorClient:
    """A connection to the coordinator of a transactional id or a group, made when it is needed."""

    def __init__(
        self,
        key: str,
        kind: CoordinatorType,
        factory: ProducerFactory,
        requests: TransactionRequests,
        cycle: TransactionCycle[Rows],
        rights: Callable[[TransactionRequest[Rows]], Collection[Right]],
    ) -> None:
        """Take ``rights``, which returns the rights that a request needs."""
        self._key = key
        self._kind = kind
        self._factory = factory
        self._requests = requests
        self._cycle = cycle
        self._rights = rights
        self._timeout_ms = min(factory.config["request_timeout_ms"], factory.errors.timeout_ms)
        self._attempts = Attempts()
        self._connection: RequestConnection | None = None
        self._in_flight: deque[TransactionRequest[Rows]] = deque()

    def connect(self) -> None:
        """Connect before there are requests, if that is possible at once."""
        with suppress(*RETRIABLE_ERRORS):
            self._connected()

    def send(self, request: TransactionRequest[Rows], sent: EncodedRequest) -> None:
        """Send a request; errors are reported to the cycle."""
        self._in_flight.append(request)
        try:
            self._connected().send(sent)
        except RETRIABLE_ERRORS as error:
            self._disconnect(error)

    def awaited(self) -> Iterable[Awaited]:
        """Return the connection if there are requests in flight."""
        return [(self._connection, self._receive)] if self._connection and self._in_flight else ()

    def check_time(self) -> None:
        """Repeat requests whose responses should have come, over another connection."""
        if self._connection is not None and self._connection.is_overdue:
            self._disconnect(TimeoutError("no response from a coordinator"))

    def abort(self, transaction: Transaction) -> None:
        """Abort a transaction if that is possible at once."""
        if self._connection is None:
            return
        with suppress(OSError, kafka_errors.KafkaError):
            aborted = end_request(transaction, commit=False)
            self._connection.send(EncodedRequest(aborted))
            connection = self._connection
            receive_ready([(connection, lambda: connection.receive() is not None)], _ABORT_S)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> RequestConnection:
        kept = self._connection
        if kept is not None and kept.is_idle and kept.is_stale:
            self.close()
        if self._connection is None:
            with self._attempts.next(self._factory.errors.one_deadline):
                node = self._requests.coordinator(self._key, self._kind)
                self._connection = self._factory.metadata.connect(
                    node,
                    lambda opened: RequestConnection(
                        opened, self._factory.config["client_id"], self._timeout_ms
                    ),
                    waits=False,
                )
        return self._connection

    def _receive(self) -> bool:
        if self._connection is None or not self._in_flight:
            return True
        try:
            response = self._connection.receive()
        except RETRIABLE_ERRORS as error:
            self._disconnect(error)
            return True
        if response is not None:
            self._handle(response)
        return response is not None

    def _handle(self, response: Any) -> None:
        request = self._in_flight.popleft()
        now = time.monotonic()
        try:
            check_response(response)
        except COORDINATOR_MOVED as error:
            self._fail(request, error)
            self._disconnect(error)
        except kafka_errors.AuthorizationError as error:
            name, rights = f"a request of type {type(request).__name__}", self._rights(request)
            raise self._factory.errors.request_error(name, error, rights) from error
        except kafka_errors.KafkaError as error:
            self._fail(request, error)
        else:
            self._cycle.succeeded(request, now)

    def _disconnect(self, error: Exception) -> None:
        """Find the coordinator again; requests in flight are sent again."""
        self.close()
        self._requests.forget_coordinator(self._key, self._kind)
        failed, self._in_flight = self._in_flight, deque()
        for request in failed:
            self._fail(request, error)

    def _fail(self, request: TransactionRequest[Rows], error: Exception) -> None:
        kind = class_of(type(error), _ERRORS) or TransactionError.FATAL
        self._cycle.failed(request, kind, reason_of(error), time.monotonic())
