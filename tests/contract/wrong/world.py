"""Worlds that do not declare what their client supports, so that tests are skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark_kafka.testing import ALL, Capability, MemoryWorld, StreamClientContract

from .adapter import PortFaults, WrongAdapter, suite_with

if TYPE_CHECKING:
    from pyspark_kafka.testing import World


class _PinnedContract(StreamClientContract):
    min_capabilities = ALL - {Capability.COMPRESSION}


class DeclaresNothing(MemoryWorld):
    """Declares no capability."""

    capabilities = frozenset()


class DeclaresNoTransactions(MemoryWorld):
    """Does not declare one of its capabilities."""

    capabilities = MemoryWorld.capabilities - {Capability.CONTINUOUS_TRANSACTIONS}


def _wrong(world: type[World]) -> WrongAdapter:
    suite = suite_with(_PinnedContract, world=world)
    return WrongAdapter(world, suite, StreamClientContract.test_required_capabilities_are_declared)


FAULTS: Final = PortFaults(
    suite_with(_PinnedContract, world=MemoryWorld),
    (_wrong(DeclaresNothing), _wrong(DeclaresNoTransactions)),
)
