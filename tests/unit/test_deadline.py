import math
from itertools import count

from pyspark_kafka.ports.clock import Deadline


def test_without_a_limit_a_call_waits_forever():
    """``None`` is a deadline that never passes."""
    deadline = Deadline.after(None)
    assert (deadline.remaining, deadline.has_passed) == (math.inf, False)


def test_nothing_is_left_when_the_time_is_up():
    deadline = Deadline.after(-1)
    assert (deadline.remaining, deadline.has_passed) == (0.0, True)


def test_polling_returns_the_first_true_answer():
    numbers = count()
    assert Deadline.after(30).poll(lambda: next(numbers), 0) == 1
    assert next(numbers) == 2


def test_polling_ends_with_the_deadline():
    assert Deadline.after(0).poll(lambda: 0, 60) == 0
    assert Deadline.after(0.01).poll(list, 0.001) == []
