"""All faults; a module of faults adds its tuple here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .broker_faults import BROKER_FAULTS
from .cluster_faults import CLUSTER_FAULTS
from .network_faults import NETWORK_FAULTS
from .storage_faults import STORAGE_FAULTS

if TYPE_CHECKING:
    from .fault import Fault

FAULTS: Final[tuple[Fault, ...]] = (
    *NETWORK_FAULTS,
    *BROKER_FAULTS,
    *CLUSTER_FAULTS,
    *STORAGE_FAULTS,
)
