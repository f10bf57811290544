"""Requests about transactions, to brokers that answer from memory."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

from kafka.protocol.admin.transactions import DescribeTransactionsRequest

from pyspark_kafka.adapters.kafka_python.failures import ErrorMapper
from pyspark_kafka.adapters.kafka_python.transactions import TransactionRequests


def test_many_transactions_are_described_in_several_requests():
    """One request for all of them may be too large for a broker."""
    names = [f"id-{number}" for number in range(1_201)]
    sizes = []

    def send(request: Any, node: int | None = None) -> Any:
        if not isinstance(request, DescribeTransactionsRequest):
            return SimpleNamespace(error_code=0, node_id=7)
        assert node == 7
        sizes.append(len(request.transactional_ids))
        states = [
            SimpleNamespace(
                transactional_id=name,
                error_code=0,
                producer_id=1,
                producer_epoch=0,
                transaction_state="Ongoing",
                transaction_start_time_ms=1,
                transaction_timeout_ms=1,
            )
            for name in request.transactional_ids
        ]
        return SimpleNamespace(transaction_states=states)

    metadata = Mock(send=send, nodes=lambda: {7})
    requests = TransactionRequests(metadata, ErrorMapper("broker:9092", 30_000))
    assert requests.describe(names).keys() == set(names)
    assert sum(sizes) == len(names)
    assert max(sizes) <= 500
