"""Requests to coordinators, which are encoded once and sent often."""

from __future__ import annotations

import pytest
from kafka.protocol.producer import EndTxnRequest, EndTxnResponse

from pyspark_kafka.adapters.kafka_python.connections import CoordinatorRequest
from pyspark_kafka.adapters.kafka_python.transactions import end_request
from pyspark_kafka.domain.writing.transaction import Transaction

TRANSACTION = Transaction("an id", 2**40, 7)


@pytest.mark.parametrize("version", [1, 3])
def test_a_request_is_the_same_but_for_its_correlation_id(version: int) -> None:
    """It is, with and without compact fields, and for versions in any order."""
    request = CoordinatorRequest(end_request(TRANSACTION, commit=True), EndTxnResponse)
    for correlation_id in (1, 2**31 - 1):
        request.encode(4 - version, 5, "me")
        sent = request.encode(version, correlation_id, "me")
        theirs = EndTxnRequest.decode(sent, version=version, header=True, framed=True)
        assert theirs.header.correlation_id == correlation_id
        assert (theirs.header.request_api_version, theirs.header.client_id) == (version, "me")
        assert (theirs.transactional_id, theirs.producer_id) == ("an id", 2**40)
        assert (theirs.producer_epoch, theirs.committed) == (7, True)
