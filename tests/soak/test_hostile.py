"""A short round of most faults; ``make soak ARGS=--hostile`` has longer ones, and restarts."""

from __future__ import annotations

import random
import sys
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

import pytest

from ..servers.proxied import MECHANISM, run_proxied
from .driver import QueryPlan
from .hostile.broker_faults import BROKER_FAULTS
from .hostile.hostile_soak import HostileSettings, HostileSoak
from .hostile.network_faults import NETWORK_FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .hostile.fault import Fault

QUERIES: Final = (
    QueryPlan("kafka-python", "exactly-once", MECHANISM),
    QueryPlan("confluent", "at-least-once"),
)
SHORT: Final = HostileSettings(
    timeout_s=3.0,
    max_fault_s=2.0,
    max_faults=1,
    rate=200,
)
ROUNDS: Final = tuple(
    tuple(filter(None, faults))
    for faults in zip_longest(
        NETWORK_FAULTS, (fault for fault in BROKER_FAULTS if not fault.restarts)
    )
)
"""A fault of the network with one of brokers."""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="sends signals to processes"),
    # What is awaited has a time-out of its own, which says what did not come.
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def soak() -> Iterator[HostileSoak]:
    """Run one query of each client, and its readers, through all rounds."""
    seed = random.randrange(1 << 32)  # noqa: S311
    with (
        run_proxied(3) as proxied,
        HostileSoak(proxied, QUERIES, seed, settings=SHORT) as soak,
    ):
        yield soak


@pytest.mark.parametrize(
    "faults", ROUNDS, ids=[", ".join(fault.name for fault in faults) for faults in ROUNDS]
)
def test_queries_outlive(soak: HostileSoak, faults: Sequence[Fault]) -> None:
    """No number is lost, exactly-once repeats none, ranges and lags are true, waits are bounded."""
    done = soak.run_faults(0, faults, random.Random())  # noqa: S311
    assert done.error is None, done.to_json()
