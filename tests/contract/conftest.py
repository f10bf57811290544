"""The worlds of the registry's adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.listed_kernels import unlisted_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_kafka.testing import World

    from .registry import Held


@pytest.fixture
def open_world(
    request: pytest.FixtureRequest, fresh_name: Callable[[], str]
) -> Callable[[Held], World]:
    """Return a factory of an adapter's world, which starts the run's Kafka if it needs one."""
    return lambda held: held.world(fresh_name, lambda: request.getfixturevalue("kafka"))


@pytest.fixture(autouse=True)
def kernels_are_called_as_listed() -> Iterator[None]:
    """Check that what adapters call is what ``pyspark-kafka warm`` compiles."""
    # Other tests of this process may call kernels as no adapter does.
    before = unlisted_kernels()
    yield
    assert unlisted_kernels() == before
