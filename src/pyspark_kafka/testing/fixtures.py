"""Fixtures of a suite that its subclasses provide."""

from __future__ import annotations

from typing import Any

import pytest


def required_fixture(doc: str) -> Any:
    """Return a fixture that fails unless a subclass overrides it; ``doc`` describes its result."""

    def missing(self: object, request: pytest.FixtureRequest) -> None:
        name = request.fixturename
        raise NotImplementedError(f"{type(self).__name__} must override the fixture '{name}'")

    missing.__doc__ = doc
    return pytest.fixture(missing)
