"""A short round of most faults; ``make soak ARGS=--hostile`` has longer ones, and restarts."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Final

import pytest

from ..servers.proxied import MECHANISM, run_proxied
from .driver import QueryPlan
from .hostile.broker_faults import BROKER_FAULTS
from .hostile.hostile_soak import HostileSettings, HostileSoak
from .hostile.network_faults import NETWORK_FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    # The first flow waits for kernels, which may have to be compiled.
    event_s=240.0,
)
FAULTS: Final = tuple(fault for fault in (*NETWORK_FAULTS, *BROKER_FAULTS) if not fault.restarts)

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
        HostileSoak(proxied, QUERIES, seed, faults=FAULTS, settings=SHORT) as soak,
    ):
        yield soak


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_queries_outlive(soak: HostileSoak, fault: Fault) -> None:
    """No number is lost, exactly-once repeats none, ranges and lags are true, waits are bounded."""
    done = soak.run_faults(0, [fault], random.Random())  # noqa: S311
    assert done.error is None, done.to_json()
