"""Starting a continuous query: what its options must be."""

from dataclasses import replace
from typing import Any

import pytest

from pyspark_kafka import continuous
from pyspark_kafka.bootstrap.continuous import QueryPlan
from pyspark_kafka.domain.errors import OptionsError

SOURCE = {"kafka.bootstrap.servers": "memory", "subscribe": "in", "client": "memory"}
SINK = {"kafka.bootstrap.servers": "memory", "topic": "out", "client": "memory"}


def function(_: Any) -> None:
    """Do nothing."""


def problems(*given: Any, **options: Any) -> tuple[str, ...]:
    merged = {"source": SOURCE, "sink": SINK, "checkpointLocation": "memory://c", **options}
    with pytest.raises(OptionsError) as raised:
        continuous.start(None, *given, **merged)
    return raised.value.problems


def test_all_problems_are_reported_together():
    assert problems(
        source={**SOURCE, "subscribe": ""},
        sink={**SINK, "deliveryGuarantee": "sometimes"},
        checkpointLocation=" ",
        epoch="soon",
        tasks=0,
    ) == (
        "tasks must be at least 1, got 0",
        (
            "epoch: Time must be specified as seconds (s), milliseconds (ms), microseconds (us), "
            "minutes (m or min), hour (h), or day (d). E.g. 50s, 100ms, or 250us.\n"
            "Failed to parse time string: soon"
        ),
        "checkpointLocation must name a directory",
        "No topics to subscribe to as specified value for option 'subscribe' is ''",
        "deliveryGuarantee must be at-least-once or exactly-once, got 'sometimes'",
        "one of 'function' and 'factory' must be given, and not both",
    )


def test_a_function_and_a_factory_exclude_each_other():
    (problem,) = problems(function, factory=lambda: None)
    assert problem == "one of 'function' and 'factory' must be given, and not both"


def test_a_channel_is_one_of_two():
    (problem,) = problems(function, channel="Directory")
    assert problem == "channel must be 'socket' or 'directory', got 'Directory'"


def test_threads_have_no_channel_to_choose():
    (problem,) = problems(function, channel="directory")
    assert problem == (
        "channel 'directory' needs a Spark session: without one, tasks are threads of this process"
    )


def test_options_are_refused_in_the_words_of_a_stream():
    (problem,) = problems(function, source={**SOURCE, "endingOffsets": "latest"})
    assert problem == "ending offset not valid in streaming queries"


def test_options_of_source_and_sink_have_to_go_together():
    (problem,) = problems(function, sink={**SINK, "client": "kafka-python"})
    assert "the same client" in problem


def test_a_storage_that_cannot_arbitrate_is_refused():
    with pytest.raises(NotImplementedError, match="ftp"):
        continuous.start(
            None, function, source=SOURCE, sink=SINK, checkpointLocation="ftp://host/c"
        )


LIMITS = continuous.ExecutionLimits(epoch_s=7, max_tasks=3)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, continuous.ExecutionLimits()),
        ({"limits": LIMITS}, LIMITS),
        ({"limits": LIMITS, "epoch": "2 seconds"}, replace(LIMITS, epoch_s=2)),
        ({"limits": LIMITS, "tasks": 5}, replace(LIMITS, max_tasks=5)),
    ],
)
def test_limits_hold_unless_an_argument_is_given(monkeypatch, given, expected):
    started: list[QueryPlan] = []
    monkeypatch.setattr(continuous, "start_in_threads", started.append)
    continuous.start(None, function, source=SOURCE, checkpointLocation="memory://c", **given)
    assert [plan.limits for plan in started] == [expected]
