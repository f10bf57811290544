"""The registry is complete: every adapter of a port runs its contract suite."""

import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Final

import pytest

from pyspark_kafka import adapters, ports, testing
from pyspark_kafka.bootstrap.plugins import client_names
from pyspark_kafka.ports.continuous import TaskChannel
from pyspark_kafka.ports.lag import QueryReports
from pyspark_kafka.testing import ALL, Capability

from .registry import (
    CLUSTER_DESCRIBERS,
    OFFSET_FETCHERS,
    RECORD_READERS,
    RECORD_WRITERS,
    REGISTRY,
    STREAM_CLIENTS,
    TRANSACTIONS,
)

CAPABILITIES: Final[Mapping[str, frozenset[Capability]]] = {
    "confluent": ALL - {Capability.CONTINUOUS_TRANSACTIONS, Capability.TRANSACTIONAL_WRITES},
    "kafka-python": ALL,
    "memory": ALL - {Capability.COMPRESSION},
}
"""The capabilities of each client: tests of all of them run."""


def classes(package: ModuleType) -> Iterator[type]:
    """Yield the classes that the modules of a package define."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for _, found in inspect.getmembers(import_module(module.name), inspect.isclass):
            if found.__module__ == module.name:
                yield found


def test_every_port_is_in_the_registry():
    """Adapters of a missing port would not be tested. ``QueryReports`` is a part of two ports."""
    found = {found for found in classes(ports) if inspect.isabstract(found)}
    assert REGISTRY.keys() == found - {QueryReports}


def test_every_port_has_a_public_suite():
    """That of ``EpochChannel`` tests the ``TaskChannel`` that belongs to it, too."""
    suites = {name for name in testing.__all__ if name.endswith("Contract")}
    assert suites == {f"{port.__name__}Contract" for port in REGISTRY if port is not TaskChannel}


@pytest.mark.parametrize("port", REGISTRY, ids=lambda port: port.__name__)
def test_every_adapter_is_in_the_registry(port):
    """A missing adapter would not be tested."""
    fulfilling = {found for found in classes(adapters) if issubclass(found, port)}
    assert set(REGISTRY[port]) == {found for found in fulfilling if not inspect.isabstract(found)}


@pytest.mark.parametrize("adapters_held", [OFFSET_FETCHERS, RECORD_READERS, RECORD_WRITERS])
def test_every_client_is_held_to_the_contracts(adapters_held, open_world):
    """Each value of the option ``client`` has an adapter in the registry."""
    assert {open_world(held).client for held in adapters_held} == set(client_names())


@pytest.mark.parametrize(
    "held",
    [
        *CLUSTER_DESCRIBERS,
        *OFFSET_FETCHERS,
        *RECORD_READERS,
        *RECORD_WRITERS,
        *STREAM_CLIENTS,
        *TRANSACTIONS,
    ],
    ids=str,
)
def test_the_capabilities_of_a_client_are_declared(held, open_world):
    """Tests of capabilities that are not declared are skipped."""
    world = open_world(held)
    assert world.capabilities == CAPABILITIES[world.client]
