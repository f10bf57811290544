import pytest

from pyspark_kafka.testing import DeadLettersContract

from .held_adapter import HeldAdapter
from .registry import DEAD_LETTERS


@pytest.mark.parametrize("held", DEAD_LETTERS, ids=str)
class TestDeadLetters(HeldAdapter, DeadLettersContract):
    def test_the_adapter_is_that_of_the_registry(self, letters, held):
        assert type(letters) is held.adapter
