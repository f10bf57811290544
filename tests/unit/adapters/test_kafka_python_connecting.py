"""Making kafka-python's clients."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.errors import KafkaTimeoutError

from pyspark_kafka.adapters.kafka_python.connecting import connect


# kafka-python 3.0.12 leaves the socket of a refused connection to the garbage collector, which is
# run here lest it warn within another test.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("client", [KafkaAdminClient, KafkaConsumer])
def test_a_client_that_cannot_connect_leaves_no_thread(client: Any) -> None:
    """A failed connection ends the network thread that was started for it."""
    before = set(threading.enumerate())
    config = {"bootstrap_servers": "127.0.0.1:1", "bootstrap_timeout_ms": 200}
    with pytest.raises(KafkaTimeoutError):
        connect(client, config)
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=10)
    assert set(threading.enumerate()) <= before
    gc.collect()
