"""Another object, around each of whose calls something happens."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

_ENDED: Final = object()


class Surrounded:
    """Does what another object does, in blocks that get the name of a call and its arguments.

    Each step of an iterator that a call returns is in a block, too.
    """

    def __init__(self, target: Any, block: Callable[..., AbstractContextManager[object]]) -> None:
        self._target = target
        self._block = block

    def __str__(self) -> str:
        return str(self._target)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            with self._block(name, *arguments):
                returned = found(*arguments, **options)
            return self._steps(name, returned) if isinstance(returned, Iterator) else returned

        return call

    def _steps(self, name: str, steps: Iterator[Any]) -> Iterator[Any]:
        while True:
            with self._block(name):
                step = next(steps, _ENDED)
            if step is _ENDED:
                return
            yield step
