"""Transactions by kafka-python's protocol classes, for a driver and its tasks."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from kafka import errors as kafka_errors
from kafka.protocol.admin.transactions import ListTransactionsRequest
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from ...domain.errors import TransactionLostError
from ...domain.kafka_settings import api_timeout_ms
from ...domain.transaction import Transaction
from ...ports.transactions import Transactions
from .cluster_metadata import ClusterMetadata
from .failures import ErrorMapper
from .settings import client_config

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ...domain.options import SinkOptions
    from ...domain.topic_partition import TopicPartition

_RETRY_S: Final = 0.05

_END_TXN_VERSION: Final = 3
"""From version 5 on (KIP-890) each end of a transaction raises the epoch, and a second request to
commit it is fenced. The coordinator goes by the version of the request."""

_GONE: Final = (
    kafka_errors.KafkaConnectionError,
    # Metadata do not name it any more.
    kafka_errors.UnknownBrokerIdError,
)
_COORDINATOR_MOVED: Final = (
    kafka_errors.NotCoordinatorError,
    kafka_errors.CoordinatorNotAvailableError,
    *_GONE,
)
_ENDED: Final = (
    # A timeout, or another producer with the same id, has raised the epoch.
    kafka_errors.ProducerFencedError,
    kafka_errors.InvalidProducerEpochError,
    # It was aborted under the same epoch.
    kafka_errors.InvalidTxnStateError,
)


@final
class TransactionRequests:
    """Sends requests, and sends them again while their errors may pass."""

    def __init__(self, metadata: ClusterMetadata, errors: ErrorMapper) -> None:
        self._metadata = metadata
        self._errors = errors
        self._coordinators: dict[str, int] = {}

    def new_producer(self) -> tuple[int, int]:
        """Return the id and the epoch of a new producer without transactions.

        :raises KafkaError: if no broker answers in time.
        """
        request = _init_producer_id(None, 0)
        answer = self._errors.retry(lambda: _checked(self._metadata.send(request)), _RETRY_S)
        return answer.producer_id, answer.producer_epoch

    def begin(self, transactional_id: str, timeout_ms: int) -> Transaction:
        """Fence earlier producers with the id, and return a transaction with a new epoch."""
        request = _init_producer_id(transactional_id, timeout_ms)
        answer = self._of_coordinator(transactional_id, request)
        return Transaction(transactional_id, answer.producer_id, answer.producer_epoch)

    def add_partitions(
        self, transaction: Transaction, partitions: Collection[TopicPartition]
    ) -> None:
        """Add partitions to a transaction, which comes before writing to them."""
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        by_topic: dict[str, list[int]] = {}
        for partition in partitions:
            by_topic.setdefault(partition.topic, []).append(partition.partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transaction.transactional_id,
            v3_and_below_producer_id=transaction.producer_id,
            v3_and_below_producer_epoch=transaction.epoch,
            v3_and_below_topics=[
                topic(name=name, partitions=numbers) for name, numbers in by_topic.items()
            ],
            max_version=3,
        )
        self._of_coordinator(transaction.transactional_id, request)

    def end(self, transaction: Transaction, *, commit: bool) -> None:
        """Commit or abort a transaction; a second call of the same kind does nothing."""
        request = EndTxnRequest(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            committed=commit,
            max_version=_END_TXN_VERSION,
        )
        self._of_coordinator(transaction.transactional_id, request)

    def open_transactions(self) -> Iterable[str]:
        """Yield the ids of the cluster's open transactions.

        :raises IncompatibleBrokerVersion: if the cluster is older than Kafka 3.0 (KIP-664).
        """
        for node in self._metadata.nodes():
            answer = self._errors.retry(partial(self._open_transactions_at, node), _RETRY_S)
            for state in answer.transaction_states if answer else ():
                yield state.transactional_id

    def _open_transactions_at(self, node: int) -> Any:
        request = ListTransactionsRequest(state_filters=["Ongoing"], producer_id_filters=[])
        try:
            return _checked(self._metadata.send(request, node))
        except _GONE:
            # Other brokers coordinate its transactions, now or soon.
            return None

    def _of_coordinator(self, transactional_id: str, request: Any) -> Any:
        def ask() -> Any:
            node = self._coordinators.get(transactional_id)
            if node is None:
                node = self._coordinators[transactional_id] = self._coordinator(transactional_id)
            try:
                return _checked(self._metadata.send(request, node))
            except _COORDINATOR_MOVED:
                self._coordinators.pop(transactional_id, None)
                raise

        return self._errors.retry(ask, _RETRY_S)

    def _coordinator(self, transactional_id: str) -> int:
        request = FindCoordinatorRequest(
            key=transactional_id, key_type=CoordinatorType.TRANSACTION.value, max_version=3
        )
        node: int = _checked(self._metadata.send(request)).node_id
        if node not in self._metadata.nodes():
            self._metadata.refresh()
        return node


def _init_producer_id(transactional_id: str | None, timeout_ms: int) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=-1,
        producer_epoch=-1,
        max_version=4,
    )


def _checked(answer: Any) -> Any:
    """Return a response, unless it has an error to raise."""
    codes = [getattr(answer, "error_code", 0)]
    for topic in getattr(answer, "results_by_topic_v3_and_below", None) or ():
        codes += [result.partition_error_code for result in topic.results_by_partition]
    # OPERATION_NOT_ATTEMPTED is set where another partition has the actual error.
    codes.sort(key=lambda code: code == kafka_errors.OperationNotAttemptedError.errno)
    for code in codes:
        if code:
            raise kafka_errors.for_code(code)
    return answer


@final
class KafkaPythonTransactions(Transactions):
    """Begins and ends transactions at their coordinators."""

    def __init__(self, options: SinkOptions) -> None:
        """Connect to nothing yet.

        :raises OptionsError: if kafka-python does not know a setting or cannot read its value.
        """
        settings = dict(options.kafka)
        self._errors = ErrorMapper(options.bootstrap_servers, api_timeout_ms(settings))
        self._timeout_ms = options.producer.transaction_timeout_ms
        self._metadata = ClusterMetadata(client_config(settings), self._errors)
        self._requests = TransactionRequests(self._metadata, self._errors)

    def begin(self, transactional_id: str) -> Transaction:
        with self._errors.mapped_errors("a request to begin a transaction"):
            return self._requests.begin(transactional_id, self._timeout_ms)

    def commit(self, transaction: Transaction) -> None:
        with self._errors.mapped_errors("a request to commit a transaction"):
            try:
                self._requests.end(transaction, commit=True)
            except _ENDED as error:
                raise TransactionLostError(
                    [transaction.transactional_id],
                    "it was aborted, by its timeout or by another writer",
                    "Write its records again.",
                ) from error

    def abort(self, transaction: Transaction) -> None:
        with self._errors.mapped_errors("a request to abort a transaction"), suppress(*_ENDED):
            self._requests.end(transaction, commit=False)

    def abort_abandoned(self, prefix: str) -> None:
        with self._errors.mapped_errors("a request to list transactions"):
            try:
                abandoned = [
                    name for name in self._requests.open_transactions() if name.startswith(prefix)
                ]
            except kafka_errors.IncompatibleBrokerVersion:
                return
            for transactional_id in abandoned:
                self._requests.begin(transactional_id, self._timeout_ms)

    def close(self) -> None:
        self._metadata.close()
