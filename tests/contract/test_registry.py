"""The registry itself."""

from __future__ import annotations

from pyspark_kafka.container import CLIENTS

from .registry import WORLDS


def test_every_client_is_held_to_the_contracts() -> None:
    """A client that the container knows and the registry lacks would go untested."""
    assert sorted(WORLDS) == sorted(CLIENTS)
