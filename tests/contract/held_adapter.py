import pytest


class HeldAdapter:
    """A suite that is parametrized by ``held``."""

    @pytest.fixture
    def world(self, open_world, held):
        return open_world(held)
