"""What the suites of a client share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .world import World

COMMITTED: Final = {"kafka__isolation__level": "read_committed"}


class WorldContract:
    """A suite that runs in a ``World``, which a subclass gives in the fixture ``world``."""

    @pytest.fixture
    def world(self) -> World:
        """Give a cluster, and the client that is held to the contract."""
        raise NotImplementedError(f"{type(self).__name__} is to override the fixture 'world'")

    @pytest.fixture(autouse=True)
    def _closing(self, world: World) -> Iterator[None]:
        """Close the world behind each test."""
        yield
        world.close()
