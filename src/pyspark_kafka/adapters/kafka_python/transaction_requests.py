"""Requests about producers and transactions, answered by the broker that coordinates them."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from kafka import errors as kafka_errors
from kafka.protocol.admin.transactions import ListTransactionsRequest
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
)

from ...domain.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from ...domain.topic_partition import TopicPartition
    from .failures import Cluster
    from .leaders import Leaders

_NEW: Final = {"producer_id": -1, "producer_epoch": -1}
_RETRY_S: Final = 0.05

_END_TXN_VERSION: Final = 3
"""From version 5 on (KIP-890) each end of a transaction raises the epoch, and who asks to commit a
second time is told that it is fenced. The coordinator goes by the version that it is asked in."""

_GONE: Final = (
    kafka_errors.KafkaConnectionError,
    # Metadata do not name it any more.
    kafka_errors.UnknownBrokerIdError,
)
_LOST_COORDINATOR: Final = (
    kafka_errors.NotCoordinatorError,
    kafka_errors.CoordinatorNotAvailableError,
    *_GONE,
)
_RETRIED: Final = (
    *_LOST_COORDINATOR,
    kafka_errors.RetriableError,
    # The transaction before is still being ended.
    kafka_errors.ConcurrentTransactionsError,
    OSError,
)


@final
class TransactionRequests:
    """Asks, and asks again for as long as an answer may come to be another."""

    def __init__(self, leaders: Leaders, cluster: Cluster) -> None:
        self._leaders = leaders
        self._cluster = cluster
        self._coordinators: dict[str, int] = {}

    def new_producer(self) -> tuple[int, int]:
        """Give the id and the epoch of a producer that writes without transactions.

        :raises KafkaError: if no broker gives one in time.
        """
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=0, max_version=4, **_NEW
        )
        answer = self._until_answered(lambda: self._leaders.ask(request))
        return answer.producer_id, answer.producer_epoch

    def begin(self, transactional_id: str, timeout_ms: int) -> Transaction:
        """Shut out whoever had the id before, and give the epoch that is to write now."""
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            max_version=4,
            **_NEW,
        )
        answer = self._of_coordinator(transactional_id, request)
        return Transaction(transactional_id, answer.producer_id, answer.producer_epoch)

    def add_partitions(
        self, transaction: Transaction, partitions: Collection[TopicPartition]
    ) -> None:
        """Say which partitions a transaction is about to write to."""
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
        """Commit or abort; to do the same once more is no error."""
        request = EndTxnRequest(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            committed=commit,
            max_version=_END_TXN_VERSION,
        )
        self._of_coordinator(transaction.transactional_id, request)

    def open_transactions(self) -> Iterable[str]:
        """Give the ids of all transactions of the cluster that are open.

        :raises IncompatibleBrokerVersion: if the cluster is of before Kafka 3.0 (KIP-664).
        """
        for node in self._leaders.nodes():
            answer = self._until_answered(partial(self._open_transactions_at, node))
            for state in answer.transaction_states if answer else ():
                yield state.transactional_id

    def _open_transactions_at(self, node: int) -> Any:
        request = ListTransactionsRequest(state_filters=["Ongoing"], producer_id_filters=[])
        try:
            return self._leaders.ask(request, node)
        except _GONE:
            # Other brokers coordinate its transactions from now on, or from the next time on.
            return None

    def _of_coordinator(self, transactional_id: str, request: Any) -> Any:
        def ask() -> Any:
            node = self._coordinators.get(transactional_id)
            if node is None:
                node = self._coordinator(transactional_id)
                self._coordinators[transactional_id] = node
            try:
                answer = self._leaders.ask(request, node)
                _raise_for(answer)
            except _LOST_COORDINATOR:
                self._coordinators.pop(transactional_id, None)
                raise
            return answer

        return self._until_answered(ask)

    def _coordinator(self, transactional_id: str) -> int:
        request = FindCoordinatorRequest(
            key=transactional_id, key_type=CoordinatorType.TRANSACTION.value, max_version=3
        )
        answer = self._leaders.ask(request)
        _raise_for(answer)
        node: int = answer.node_id
        if node not in self._leaders.nodes():
            self._leaders.refresh()
        return node

    def _until_answered(self, ask: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + self._cluster.timeout_ms / 1_000
        while True:
            try:
                answer = ask()
                _raise_for(answer)
            except _RETRIED:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_S)
            else:
                return answer


def _raise_for(answer: Any) -> None:
    codes = [getattr(answer, "error_code", 0)]
    for topic in getattr(answer, "results_by_topic_v3_and_below", None) or ():
        codes += [result.partition_error_code for result in topic.results_by_partition]
    # A partition that was not looked at, for another's sake, says so; the other says why.
    codes.sort(key=lambda code: code == kafka_errors.OperationNotAttemptedError.errno)
    for code in codes:
        if code:
            raise kafka_errors.for_code(code)
