"""A world for each client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .registry import WORLDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .worlds import World


@pytest.fixture(params=sorted(WORLDS))
def world(request: pytest.FixtureRequest, fresh_name: Callable[[], str]) -> Iterator[World]:
    """Give a cluster and the client that is held to the contract."""
    client: str = request.param
    made = WORLDS[client](client, fresh_name, lambda: request.getfixturevalue("kafka"))
    yield made
    made.close()
