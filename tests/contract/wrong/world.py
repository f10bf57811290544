"""Worlds that do not declare what their client supports, so that tests are skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark_kafka.testing import ALL, Capability, MemoryWorld, StreamClientContract

from .adapter import Faults, suite_with

if TYPE_CHECKING:
    from pyspark_kafka.testing import World


class _PinnedContract(StreamClientContract):
    min_capabilities = ALL - {Capability.COMPRESSION}


def _suite(world: type[World]) -> type:
    return suite_with(_PinnedContract, world=world)


wrong: Final = Faults(MemoryWorld, _suite)


@wrong(_PinnedContract.test_required_capabilities_are_declared)
class DeclaresNothing(MemoryWorld):
    """Declares no capability."""

    capabilities = frozenset()


@wrong(_PinnedContract.test_required_capabilities_are_declared)
class DeclaresNoTransactions(MemoryWorld):
    """Does not declare one of its capabilities."""

    capabilities = MemoryWorld.capabilities - {Capability.CONTINUOUS_TRANSACTIONS}
