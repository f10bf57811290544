import pytest

from pyspark_kafka.testing import ClockContract

from .registry import CLOCKS


class TestClock(ClockContract):
    @pytest.fixture(params=CLOCKS)
    def clock(self, request):
        return request.param()
