"""The faults that show most about continuous queries; ``make soak ARGS=--continuous`` has more."""

import random
import sys
from typing import Final

import pytest

from pyspark_kafka.brokers import KafkaCluster
from verification.soak.continuous_driver import LOCAL, THREADS
from verification.soak.continuous_soak import CONTINUOUS_QUERIES, ContinuousSoak
from verification.soak.epoch_points import EpochPoint
from verification.soak.faults import Fault, kill_driver, kill_worker, wake_driver
from verification.soak.stage import BROKERS

CHOSEN: Final = (
    Fault("worker killed", kill_worker, (LOCAL,)),
    Fault("driver killed", kill_driver(EpochPoint.LOGGED), (THREADS,)),
    Fault("stopped driver woken", wake_driver, (THREADS,), may_reorder=True),
)

QUERIES: Final = [
    query
    for query in CONTINUOUS_QUERIES
    if query.client == "kafka-python" and query.is_exactly_once
]
"""The one of which most can go wrong."""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about processes"),
    # What is awaited has a time-out of its own, which says what did not come.
    pytest.mark.timeout(1_200),
]


def test_no_record_is_lost_or_doubled_by_a_fault():
    seed = random.randrange(1 << 32)  # noqa: S311
    with (
        KafkaCluster(BROKERS) as cluster,
        ContinuousSoak(cluster, QUERIES, seed, faults=CHOSEN) as soak,
    ):
        soak.run(range(len(CHOSEN)))
