"""The base of the suites that need a client and a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .world import World

COMMITTED: Final = {"kafka__isolation__level": "read_committed"}


class WorldContract:
    """A suite that runs in a ``World``; a subclass overrides the fixture ``world``."""

    @pytest.fixture
    def world(self) -> World:
        """Return a cluster with the client under test."""
        raise NotImplementedError(f"{type(self).__name__} must override the fixture 'world'")

    @pytest.fixture(autouse=True)
    def _closing(self, world: World) -> Iterator[None]:
        """Close the world after each test."""
        yield
        world.close()
