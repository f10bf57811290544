"""A short round of each fault; ``make soak ARGS=--hostile`` has longer ones."""

import random
import sys
from typing import Final

import pytest

from verification.soak.driver import QueryPlan
from verification.soak.hostile.checkpoints import HDFS, S3, STORAGES, run_checkpoints
from verification.soak.hostile.hostile_soak import HostileSettings, HostileSoak
from verification.soak.hostile.registry import FAULTS
from verification.soak.hostile.topic_faults import CLEANING

from ..servers.proxied import MECHANISM, run_proxied
from ..servers.small_disk import can_mount

QUERIES: Final = (
    QueryPlan("kafka-python", "exactly-once", MECHANISM),
    QueryPlan("confluent", "at-least-once"),
    QueryPlan("kafka-python", "at-least-once", MECHANISM),
)
"""One for each storage of checkpoints."""

SHORT: Final = HostileSettings(
    timeout_s=3.0, max_fault_s=2.0, max_faults=1, rate=200, rounds_per_count=2, backlog=2_000
)
_DISK: Final = ("disk of checkpoints full",) if can_mount() else ()
ROUNDS: Final[tuple[tuple[str, ...], ...]] = (
    ("black hole", "broker suspended"),
    ("requests held", "broker suspended before handshakes"),
    ("answers held", "broker suspended in handshakes"),
    ("500 ms late", "preferred leaders elected", "partition added"),
    ("1 kB a second", "transaction coordinator moved"),
    ("reset in a frame", "group coordinator moved"),
    ("refused", "s3 slow", "hdfs slow"),
    ("certificates rotated", "compaction", "s3 fails", "hdfs lists late"),
    ("password rotated", "retention", "hdfs fails"),
    ("partitions reassigned", "s3 lists late", *_DISK),
    ("topic created again",),
)
"""Faults that happen at the same time; each storage has the checkpoint of another query."""

_STARTS: Final = "a broker that starts takes seconds of all cores, in which waits cannot be bounded"
LEFT_OUT: Final = {
    "broker killed": _STARTS,
    "rolling restart": _STARTS,
    "listener on another protocol": _STARTS,
    "unclean elections allowed": _STARTS,
    "disk of a broker full": f"{_STARTS}; only root may mount its disk",
    "clock an hour off": f"{_STARTS}; libfaketime is another download",
    **dict.fromkeys(
        ("near replica killed", "near replica suspended", "near replica behind"),
        "its queries read from leaders",
    ),
    "brokers upgraded": f"{_STARTS}; an older Kafka is another download, of 45 MB",
    **({} if _DISK else {"disk of checkpoints full": "this user may not mount a small disk"}),
}
"""Faults that only the long form has, and why."""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="sends signals to processes"),
    # What is awaited has a time-out of its own, which says what did not come.
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def soak(s3, hdfs):
    seed = random.randrange(1 << 32)  # noqa: S311
    with (
        run_proxied(3, CLEANING) as proxied,
        run_checkpoints(STORAGES, seed, {S3: s3, HDFS: hdfs}) as checkpoints,
        HostileSoak(proxied, QUERIES, seed, settings=SHORT, checkpoints=checkpoints) as soak,
    ):
        yield soak


@pytest.mark.parametrize("names", ROUNDS, ids=", ".join)
def test_queries_outlive(soak, names):
    """No number is lost, exactly-once repeats none, ranges and lags are true, waits are bounded."""
    of_name = {fault.name: fault for fault in FAULTS}
    faults = [of_name[name] for name in names]
    soak.run_faults(0, faults, random.Random())  # noqa: S311


def test_each_fault_has_a_round():
    in_rounds = [name for names in ROUNDS for name in names]
    assert sorted([*in_rounds, *LEFT_OUT]) == sorted(fault.name for fault in FAULTS)


def test_leftovers_of_each_round_are_counted():
    """Leftovers of a round are counted after it or after the next one, also at the end."""
    assert len(ROUNDS) % SHORT.rounds_per_count == 1
