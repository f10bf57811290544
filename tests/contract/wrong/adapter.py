"""Wrong adapters of a port, and the suites that test them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


@final
@dataclass(frozen=True, slots=True)
class WrongAdapter:
    """An adapter with one fault, which its name or its docstring states.

    ``suite`` is the subclass of the shipped suite that tests it, and ``caught_by`` the test that
    has to fail.
    """

    adapter: type
    suite: type
    caught_by: Callable[..., None]

    def __str__(self) -> str:
        return self.adapter.__name__


class Faults:
    """The wrong adapters of a port: a decorator registers them.

    Most are the right adapter with a function in place of one method. ``suite`` returns the suite
    that tests an adapter. ``right`` is the suite on the right adapter: it passes every test that a
    wrong one fails.
    """

    def __init__(
        self, adapter: type, suite: Callable[[Any], type], right: type | None = None
    ) -> None:
        self.right = right or suite(adapter)
        self.wrong: list[WrongAdapter] = []
        self._adapter = adapter
        self._suite = suite

    def __call__(self, caught_by: Callable[..., None], method: str | None = None) -> Any:
        """Return a decorator of a wrong adapter, or of a function in place of a method.

        ``caught_by`` is the test that has to fail for it. The decorator returns the adapter.
        """

        def register(fault: Any) -> type:
            adapter = fault if method is None else self._with(fault, method)
            self.wrong.append(WrongAdapter(adapter, self._suite(adapter), caught_by))
            return adapter

        return register

    def __add__(self, others: Faults) -> Faults:
        both = Faults(self._adapter, self._suite, self.right)
        both.wrong = [*self.wrong, *others.wrong]
        return both

    def _with(self, fault: Callable[..., object], method: str) -> type:
        members = {method: fault, "__doc__": fault.__doc__, "__module__": fault.__module__}
        return type(fault.__name__, (self._adapter,), members)


def suite_with(suite: type, **fixtures: Callable[[], object]) -> type:
    """Return a subclass of a suite whose fixtures return what these functions return."""
    return type(suite.__name__, (suite,), {name: _fixture(fixtures[name]) for name in fixtures})


def _fixture(make: Callable[[], object]) -> object:
    @pytest.fixture
    def fixture(_self):
        return make()

    return fixture
