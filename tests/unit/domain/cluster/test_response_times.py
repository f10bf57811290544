"""Responses that come late, slowly, or while the caller was away."""

import math

from pyspark_kafka.domain.cluster.response_times import ResponseTimes


def test_a_response_has_the_time_of_its_request():
    times = ResponseTimes(10)
    assert times.seconds_left(0) == math.inf
    times.sent(0)
    times.sent(4)
    assert times.seconds_left(1) == 9
    assert times.seconds_left(11) == 0
    times.complete()
    assert times.seconds_left(11) == 3
    times.complete()
    assert not times.is_awaited


def test_what_has_begun_to_come_has_a_part_of_the_time_at_least():
    times = ResponseTimes(10)
    times.sent(0)
    times.begin(9.9)
    times.begin(10.5)
    assert 0.3 < times.seconds_left(10.5) < 0.5


def test_a_caller_that_was_away_may_receive_what_came_meanwhile():
    times = ResponseTimes(10)
    times.sent(0)
    times.look(1)
    times.begin(1)
    times.look(2)
    assert times.seconds_left(12) == 0
    times.look(12)
    assert times.seconds_left(12) == 1
