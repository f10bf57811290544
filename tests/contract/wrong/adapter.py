from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, final

import pytest

_NOT_PASSED: Final = frozenset({"expect"})
"""Optional methods of a reader, which do nothing unless a wrong reader overrides them."""


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


class PassesOn:
    """A base beside a port: passes every call to ``inner``, the right adapter.

    ``seen`` is for what a fault has to remember.
    """

    def __init__(self, inner: Any, world: Any = None) -> None:
        self.inner = inner
        self.world = world
        self.seen: dict[Any, Any] = {}

    def __init_subclass__(cls) -> None:
        if PassesOn not in cls.__bases__:
            return
        for base in cls.__bases__[1:]:
            for name in _public(base) - vars(cls).keys() - _NOT_PASSED:
                is_property = isinstance(getattr(base, name), property)
                setattr(cls, name, _passed_property(name) if is_property else _passed(name))


def _public(port: type) -> set[str]:
    members = (vars(each) for each in port.__mro__ if each is not object)
    return {name for each in members for name in each if not name.startswith("_")}


def _passed(name: str) -> Any:
    return lambda self, *given, **named: getattr(self.inner, name)(*given, **named)


def _passed_property(name: str) -> property:
    return property(lambda self: getattr(self.inner, name))


class Faults:
    """The wrong adapters of a port: a decorator registers them.

    Most are the right adapter with a function instead of one method. ``suite`` returns the suite
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
        """Return a decorator of a wrong adapter, or of a function instead of a method.

        ``caught_by`` is the test that has to fail for it. The decorator returns the adapter.
        """

        def register(fault: Any) -> type:
            adapter = fault if method is None else self._with(fault, method)
            self.wrong.append(WrongAdapter(adapter, self._suite(adapter), caught_by))
            return adapter

        return register

    def drops_error(
        self,
        caught_by: Callable[..., None],
        method: str,
        error: type[Exception],
        result: object = None,
    ) -> type:
        """Add an adapter whose method returns a result instead of an error."""

        def dropping(self, *given, **named):
            with suppress(error):
                return getattr(self.inner, method)(*given, **named)
            return result

        dropping.__name__ = f"{method}_drops_{error.__name__}"
        return self(caught_by, method)(dropping)

    def fails_when_closed_twice(self, caught_by: Callable[..., None]) -> None:
        """Add an adapter that can be closed once."""

        def fails_when_it_is_closed_twice(self):
            if vars(self).setdefault("is_closed", False):
                raise RuntimeError("it is closed")
            self.is_closed = True

        self(caught_by, "close")(fails_when_it_is_closed_twice)

    def __add__(self, others: "Faults") -> "Faults":
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
