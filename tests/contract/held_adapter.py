"""The base of suites that are parametrized by the registry's adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.testing import World

    from .registry import Held


class HeldAdapter:
    """A suite that is parametrized by ``held``."""

    @pytest.fixture
    def world(self, open_world: Callable[[Held], World], held: Held) -> World:
        """Return the adapter's world."""
        return open_world(held)
