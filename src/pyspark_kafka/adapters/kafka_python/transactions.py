"""Transactions by kafka-python's protocol classes, for a driver and its tasks."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from kafka import errors as kafka_errors

from ...domain.errors import TransactionLostError
from ...domain.kafka_settings import api_timeout_ms
from ...ports.transactions import Transactions
from .cluster_metadata import ClusterMetadata
from .failures import ErrorMapper
from .settings import client_config
from .transaction_requests import TransactionRequests

if TYPE_CHECKING:
    from ...domain.options import SinkOptions
    from ...domain.transaction import Transaction

_ENDED: Final = (
    # A timeout, or another producer with the same id, has raised the epoch.
    kafka_errors.ProducerFencedError,
    kafka_errors.InvalidProducerEpochError,
    # It was aborted under the same epoch.
    kafka_errors.InvalidTxnStateError,
)


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
                    "Write its records anew.",
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
