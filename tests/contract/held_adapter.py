"""The base of suites that are parametrized by the registry's adapters."""

import pytest


class HeldAdapter:
    """A suite that is parametrized by ``held``."""

    @pytest.fixture
    def world(self, open_world, held):
        """Return the adapter's world."""
        return open_world(held)
