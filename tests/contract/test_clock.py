"""The contract of every ``Clock``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.testing import ClockContract

from .registry import CLOCKS

if TYPE_CHECKING:
    from pyspark_kafka.ports.clock import Clock


class TestClock(ClockContract):
    @pytest.fixture(params=CLOCKS)
    def clock(self, request: pytest.FixtureRequest) -> Clock:
        """Return each clock in turn."""
        made: Clock = request.param()
        return made
