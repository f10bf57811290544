"""Transactions by kafka-python's protocol classes, for a driver and its tasks."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from kafka import errors as kafka_errors
from kafka.protocol.admin.transactions import DescribeTransactionsRequest, ListTransactionsRequest
from kafka.protocol.metadata import CoordinatorType
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

from ...domain.errors import OptionsError, UnsupportedFeatureError
from ...domain.security.rights import (
    Operation,
    group_rights,
    transactional_id_right,
)
from ...domain.topic_partition import TopicPartition
from ...domain.writing.errors import ProducerFencedError, TransactionLostError
from ...domain.writing.group_seal import GroupOffset
from ...domain.writing.transaction import (
    FORGOTTEN,
    Transaction,
    TransactionDescription,
    TransactionState,
    end_of,
)
from ...ports.writing import Transactions
from .cluster_metadata import ClusterMetadata
from .coordinator_requests import (
    COORDINATOR_MOVED,
    GONE,
    RETRY_S,
    CoordinatorRequests,
    by_topic,
)
from .responses import check_response, reading, require_all, unique
from .settings import client_settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from ...domain.options.sink import SinkOptions
    from ...domain.security.rights import Right

_MAX_DESCRIBED: Final = 500
"""How many transactional ids a request asks for: a broker limits the size of requests."""

_END_TXN_VERSION: Final = 3
"""From version 5 on (KIP-890) each end of a transaction raises the epoch, and a second request to
commit it is fenced. The coordinator decides by the version of the request."""

_ENDED: Final = (
    # A timeout, or another producer with the same id, has raised the epoch.
    kafka_errors.ProducerFencedError,
    kafka_errors.InvalidProducerEpochError,
    # The transaction was aborted under the same epoch.
    kafka_errors.InvalidTxnStateError,
)


@final
class TransactionRequests(CoordinatorRequests):
    """Sends requests of transactions, and again while their errors may pass."""

    def new_producer(self) -> tuple[int, int]:
        """Return the id and the epoch of a new producer without transactions."""
        request = _init_producer_id(None, 0)
        answer = self._errors.retry(lambda: check_response(self._metadata.send(request)), RETRY_S)
        return _producer(answer)

    def begin(self, transactional_id: str, timeout_ms: int) -> Transaction:
        """Fence earlier producers with the id, and return a transaction with a new epoch.

        :raises OptionsError: if the brokers do not allow the time-out.
        """
        request = _init_producer_id(transactional_id, timeout_ms)
        try:
            answer = self._of_coordinator(transactional_id, request)
        except kafka_errors.InvalidTransactionTimeoutError:
            problem = (
                f"'kafka.transaction.timeout.ms' is {timeout_ms}, more than the brokers allow: "
                "lower it, or raise the brokers' 'transaction.max.timeout.ms' (900000 by default)"
            )
            raise OptionsError([problem]) from None
        return Transaction(transactional_id, *_producer(answer))

    def add_partitions(
        self, transaction: Transaction, partitions: Collection[TopicPartition]
    ) -> None:
        """Add partitions to a transaction, which comes before writing to them."""
        request = add_partitions_request(transaction, partitions)
        self._of_coordinator(transaction.transactional_id, request)

    def end(self, transaction: Transaction, *, commit: bool) -> None:
        """Commit or abort a transaction; a second call of the same kind does nothing."""
        self._of_coordinator(transaction.transactional_id, end_request(transaction, commit=commit))

    def describe(self, transactional_ids: Collection[str]) -> dict[str, TransactionDescription]:
        """Return the coordinators' descriptions of transactional ids; unknown ids are missing.

        :raises IncompatibleBrokerVersion: if a broker is older than Kafka 3.0 (KIP-664).
        """
        described: dict[str, TransactionDescription] = {}
        left = list(transactional_ids)

        def ask() -> None:
            by_node: dict[int, list[str]] = {}
            for name in left:
                node = self.coordinator(name, CoordinatorType.TRANSACTION)
                by_node.setdefault(node, []).append(name)
            for node, names in by_node.items():
                described.update(self._describe_at(node, names))
                left[:] = [name for name in left if name not in names]

        self._errors.retry(ask, RETRY_S)
        return described

    def _describe_at(self, node: int, names: list[str]) -> dict[str, TransactionDescription]:
        described: dict[str, TransactionDescription] = {}
        for start in range(0, len(names), _MAX_DESCRIBED):
            some = names[start : start + _MAX_DESCRIBED]
            try:
                answered = self._states(node, some)
            except COORDINATOR_MOVED:
                for name in some:
                    self.forget_coordinator(name, CoordinatorType.TRANSACTION)
                raise
            with reading():
                described |= {
                    name: _description(answered[name])
                    for name in some
                    if not answered[name].error_code
                }
        return described

    def _states(self, node: int, names: list[str]) -> dict[str, Any]:
        request = DescribeTransactionsRequest(transactional_ids=names)
        states = self._metadata.send(request, node).transaction_states
        with reading():
            answered = unique((state.transactional_id, state) for state in states)
            require_all(answered, names)
        for state in answered.values():
            if state.error_code not in (0, kafka_errors.TransactionalIdNotFoundError.errno):
                raise kafka_errors.for_code(state.error_code)
        return answered

    def commit_offset(
        self,
        transaction: Transaction,
        group_id: str,
        partition: TopicPartition,
        offset: GroupOffset,
    ) -> None:
        """Commit an offset of a group, and nothing else, in a transaction."""
        name = transaction.transactional_id
        self._of_coordinator(name, add_offsets_request(transaction, group_id))
        request = commit_offsets_request(
            transaction, group_id, partition, offset.offset, offset.metadata
        )
        self.ask_coordinator(group_id, request, CoordinatorType.GROUP)
        self.end(transaction, commit=True)

    def find(self, prefix: str, state: TransactionState) -> dict[str, TransactionDescription]:
        """Describe the transactional ids with a prefix that are in a state.

        :raises IncompatibleBrokerVersion: if the cluster is older than Kafka 3.0 (KIP-664).
        """
        found: dict[str, TransactionDescription] = {}
        for node in self._metadata.nodes():
            found |= self._errors.retry(partial(self._find_at, node, prefix, state), RETRY_S)
        return found

    def _find_at(
        self, node: int, prefix: str, state: TransactionState
    ) -> dict[str, TransactionDescription]:
        request = ListTransactionsRequest(state_filters=[state.value], producer_id_filters=[])
        try:
            answer = check_response(self._metadata.send(request, node))
            with reading():
                listed = [each.transactional_id for each in answer.transaction_states]
                if None in listed:
                    raise ValueError("a transaction has no id")
            names = [name for name in listed if name.startswith(prefix)]
            described = self._describe_at(node, names)
        except GONE:
            # Other brokers coordinate this broker's transactions, now or soon.
            return {}
        return {name: each for name, each in described.items() if each.state is state}

    def _of_coordinator(self, transactional_id: str, request: Any) -> Any:
        return self.ask_coordinator(transactional_id, request, CoordinatorType.TRANSACTION)


def add_partitions_request(
    transaction: Transaction, partitions: Iterable[TopicPartition]
) -> AddPartitionsToTxnRequest:
    """Return a request to add partitions to a transaction."""
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transaction.transactional_id,
        v3_and_below_producer_id=transaction.producer_id,
        v3_and_below_producer_epoch=transaction.epoch,
        v3_and_below_topics=[
            topic(name=name, partitions=numbers) for name, numbers in by_topic(partitions).items()
        ],
        max_version=3,
    )


def add_offsets_request(transaction: Transaction, group_id: str) -> AddOffsetsToTxnRequest:
    """Return a request to add a group's offsets to a transaction."""
    return AddOffsetsToTxnRequest(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        group_id=group_id,
        max_version=3,
    )


def commit_offsets_request(
    transaction: Transaction,
    group_id: str,
    partition: TopicPartition,
    next_offset: int,
    metadata: str = "",
) -> TxnOffsetCommitRequest:
    """Return a request to commit the offset of a group without members in a transaction."""
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    committed = topic.TxnOffsetCommitRequestPartition(
        partition_index=partition.partition,
        committed_offset=next_offset,
        committed_leader_epoch=-1,
        committed_metadata=metadata,
    )
    return TxnOffsetCommitRequest(
        transactional_id=transaction.transactional_id,
        group_id=group_id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        generation_id=-1,
        member_id="",
        group_instance_id=None,
        topics=[topic(name=partition.topic, partitions=[committed])],
        max_version=3,
    )


def end_request(transaction: Transaction, *, commit: bool) -> EndTxnRequest:
    """Return a request to commit or to abort a transaction."""
    return EndTxnRequest(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        committed=commit,
        max_version=_END_TXN_VERSION,
    )


def _init_producer_id(transactional_id: str | None, timeout_ms: int) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=-1,
        producer_epoch=-1,
        max_version=4,
    )


def _producer(answer: Any) -> tuple[int, int]:
    """Return the id and the epoch of a producer.

    :raises KafkaProtocolError: if they belong to no producer.
    """
    producer_id, epoch = answer.producer_id, answer.producer_epoch
    if min(producer_id, epoch) < 0:
        raise kafka_errors.KafkaProtocolError(f"the producer id is {producer_id}, epoch {epoch}")
    return producer_id, epoch


def _description(state: Any) -> TransactionDescription:
    """Return a response's description of one transactional id.

    :raises ValueError: if Kafka has no such state.
    """
    return TransactionDescription(
        state.producer_id,
        state.producer_epoch,
        TransactionState(state.transaction_state),
        state.transaction_start_time_ms,
        state.transaction_timeout_ms,
    )


@contextmanager
def _requires_descriptions() -> Iterator[None]:
    try:
        yield
    except kafka_errors.IncompatibleBrokerVersion as error:
        raise UnsupportedFeatureError(
            "A Kafka broker before 3.0",
            "say whether a transaction is still open (KIP-664), which "
            "'deliveryGuarantee=exactly-once' needs: use Kafka 3.0 or newer, or 'at-least-once'",
        ) from error


@final
class KafkaPythonTransactions(Transactions):
    """Begins and ends transactions at their coordinators."""

    def __init__(self, options: SinkOptions) -> None:
        """Connect to nothing yet; raise as ``client_settings`` for the options."""
        config, self._errors = client_settings(options.java)
        self._timeout_ms = options.producer.transaction_timeout_ms
        self._metadata = ClusterMetadata(config, self._errors)
        self._requests = TransactionRequests(self._metadata, self._errors)

    def begin(self, transactional_id: str) -> Transaction:
        with self._writing("a request to begin a transaction", transactional_id):
            return self._requests.begin(transactional_id, self._timeout_ms)

    def commit(self, transaction: Transaction) -> None:
        name = transaction.transactional_id
        with self._writing("a request to commit a transaction", name):
            try:
                self._requests.end(transaction, commit=True)
            except _ENDED as error:
                if self._has_nothing_to_commit(transaction, error):
                    return
                raise TransactionLostError(
                    [name],
                    "it was aborted, by its timeout or by another writer",
                    "Write its records again.",
                ) from error
            except kafka_errors.InvalidProducerIdMappingError as error:
                raise TransactionLostError(
                    [transaction.transactional_id],
                    FORGOTTEN,
                    "It may have been committed before: look for its records with "
                    "'isolation.level=read_committed', and write them again if they are missing.",
                    may_be_committed=True,
                ) from error

    def _has_nothing_to_commit(self, transaction: Transaction, error: Exception) -> bool:
        # Brokers take a transaction without records for one that has not begun.
        if not isinstance(error, kafka_errors.InvalidTxnStateError):
            return False
        name = transaction.transactional_id
        try:
            found = self._requests.describe([name]).get(name)
        except kafka_errors.IncompatibleBrokerVersion:
            return False
        is_empty = found is not None and found.state is TransactionState.EMPTY
        return is_empty and end_of(transaction, found) is None

    def abort(self, transaction: Transaction) -> None:
        with (
            self._writing("a request to abort a transaction", transaction.transactional_id),
            suppress(*_ENDED, kafka_errors.InvalidProducerIdMappingError),
        ):
            self._requests.end(transaction, commit=False)

    def describe(self, transactional_ids: Collection[str]) -> Mapping[str, TransactionDescription]:
        rights = [
            transactional_id_right(Operation.DESCRIBE, name) for name in sorted(transactional_ids)
        ]
        request = "a request to describe transactions"
        with self._errors.one_call(request, *rights), _requires_descriptions():
            return self._requests.describe(transactional_ids)

    def find(self, prefix: str, state: TransactionState) -> Mapping[str, TransactionDescription]:
        with self._errors.one_call("a request to list transactions"), _requires_descriptions():
            return self._requests.find(prefix, state)

    def committed(
        self, group_id: str, partitions: Collection[TopicPartition], *, is_stable: bool = True
    ) -> Mapping[TopicPartition, GroupOffset]:
        if not partitions:
            return {}
        rights = group_rights(Operation.READ, group_id, partitions)
        with self._errors.one_call("a request for committed offsets", *rights):
            return self._requests.committed_offsets(group_id, partitions, is_stable=is_stable)

    def commit_offset(
        self,
        transaction: Transaction,
        group_id: str,
        partition: TopicPartition,
        offset: GroupOffset,
    ) -> None:
        name = transaction.transactional_id
        rights = group_rights(Operation.READ, group_id, [partition])
        with self._writing("a request to commit offsets in a transaction", name, *rights):
            try:
                self._requests.commit_offset(transaction, group_id, partition, offset)
            except _ENDED as error:
                raise ProducerFencedError(name) from error

    def one_deadline(self) -> AbstractContextManager[object]:
        return self._errors.one_deadline()

    def close(self) -> None:
        self._metadata.close()

    def _writing(
        self, request: str, transactional_id: str, *rights: Right
    ) -> AbstractContextManager[object]:
        # The right to write includes the right to describe, which finding a coordinator needs.
        right = transactional_id_right(Operation.WRITE, transactional_id)
        return self._errors.one_call(request, right, *rights)
