"""A wrong adapter, and the suite that tests it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


@final
@dataclass(frozen=True, slots=True)
class WrongAdapter:
    """An adapter with one fault, which its docstring states.

    ``suite`` is the subclass of the shipped suite that tests it, and ``caught_by`` the test that
    has to fail.
    """

    adapter: type
    suite: type
    caught_by: Callable[..., None]

    def __str__(self) -> str:
        return self.adapter.__name__


@final
@dataclass(frozen=True, slots=True)
class PortFaults:
    """The wrong adapters of a port.

    ``right`` is the suite on an adapter that is made like them and has no fault: it passes every
    test that one of them fails.
    """

    right: type
    wrong: tuple[WrongAdapter, ...]


def wrong_with(suite: Callable[[Any], type]) -> Callable[..., list[WrongAdapter]]:
    """Return a function of a test and the adapters that have to fail it.

    It makes wrong adapters of them; ``suite`` returns the suite that tests one.
    """

    def wrong(caught_by: Callable[..., None], *adapters: type) -> list[WrongAdapter]:
        return [WrongAdapter(adapter, suite(adapter), caught_by) for adapter in adapters]

    return wrong


def suite_with(suite: type, **fixtures: Callable[[], object]) -> type:
    """Return a subclass of a suite whose fixtures return what these functions return."""
    return type(suite.__name__, (suite,), {name: _fixture(fixtures[name]) for name in fixtures})


def _fixture(make: Callable[[], object]) -> object:
    @pytest.fixture
    def fixture(_self):
        return make()

    return fixture
