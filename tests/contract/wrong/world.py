"""Worlds that do not declare what their client supports, so that tests are skipped."""

from typing import Final

from pyspark_kafka.testing import ALL, Capability, MemoryWorld, StreamClientContract, World

from .adapter import Faults, suite_with


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
