"""What the suites of a client's ports share: an adapter of the registry, in its own world."""

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
