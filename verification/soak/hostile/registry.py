"""All faults, and which of them are available; a module of faults adds its tuple here."""

from collections.abc import Mapping, Sequence
from typing import Final

from ..numbers import SoakError
from .broker_faults import BROKER_FAULTS, NEAR_REPLICA, THREE_BROKERS
from .checkpoints import HDFS, S3, SMALL_DISK
from .cluster_faults import CLUSTER_FAULTS, FAKETIME, MOUNTS, OLDER_BROKERS
from .fault import Fault
from .network_faults import NETWORK_FAULTS
from .storage_faults import STORAGE_FAULTS
from .topic_faults import OWN_THREADS, TOLERANCE, TOPIC_FAULTS

FAULTS: Final[tuple[Fault, ...]] = (
    *NETWORK_FAULTS,
    *BROKER_FAULTS,
    *CLUSTER_FAULTS,
    *TOPIC_FAULTS,
    *STORAGE_FAULTS,
)

NEEDS: Final[Mapping[str, str]] = {
    THREE_BROKERS: "three brokers",
    MOUNTS: "a user who may mount file systems",
    FAKETIME: "libfaketime (python -m tests.servers.faketime)",
    OLDER_BROKERS: "--kafka 3.9.1",
    NEAR_REPLICA: "--racks",
    OWN_THREADS: "--hostile threads",
    TOLERANCE: "--hostile threads or continuous",
    S3: "--storages s3",
    HDFS: "--storages hdfs",
    SMALL_DISK: "--storages 'small disk' (and a user who may mount file systems)",
}
"""The needs of faults, each with the argument or the tool that meets it."""


def fitting(wanted: Sequence[Fault], offers: frozenset[str]) -> list[Fault]:
    """Return the faults that have all that they need; raise if none has."""
    fit = [fault for fault in wanted if fault.needs <= offers]
    if not fit:
        missing = "; ".join(
            f"{fault.name!r} needs {_explained(fault.needs - offers)}" for fault in wanted
        )
        raise SoakError(f"no fault can be had: {missing}")
    return fit


def _explained(needs: frozenset[str]) -> str:
    return " and ".join(NEEDS[need] for need in sorted(needs))
