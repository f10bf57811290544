"""Python functions and entry points that options name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any


def named_function(name: str) -> Callable[..., Any]:
    """Return the function ``module:function``, whose second part may have dots.

    :raises ValueError: if it cannot be imported, or is not a function of that module.
    """
    module, _, path = name.partition(":")
    return checked_function(name, lambda: _attribute(import_module(module), path))


def checked_function(name: str, load: Callable[[], object]) -> Callable[..., Any]:
    """Return the function that ``load`` returns; raise as ``named_function``."""
    try:
        found = load()
    except Exception as error:
        # A module can raise anything while it is imported.
        raise ValueError(f"'{name}' cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise ValueError(f"'{name}' is not a function")  # noqa: TRY004 - an option has this value
    return found


def entry_points_named(group: str, name: str) -> list[EntryPoint]:
    """Return the different entry points of a group with a name: more than one is an error."""
    # If a distribution is on the path twice, importlib.metadata returns equal entry points.
    found = {each.value: each for each in entry_points(group=group, name=name)}
    return [found[value] for value in sorted(found)]


def _attribute(module: ModuleType, path: str) -> object:
    found: object = module
    for part in path.split("."):
        found = getattr(found, part)
        if isinstance(found, ModuleType):
            # The operator allows modules by their names, and not those that they import.
            raise TypeError(f"'{part}' is another module")
    return found
