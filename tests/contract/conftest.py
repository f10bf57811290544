"""The worlds of the registry's adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.testing import World

    from .registry import Held


@pytest.fixture
def open_world(
    request: pytest.FixtureRequest, fresh_name: Callable[[], str]
) -> Callable[[Held], World]:
    """Return a factory of an adapter's world, which starts the run's Kafka if it needs one."""
    return lambda held: held.world(fresh_name, lambda: request.getfixturevalue("kafka"))
