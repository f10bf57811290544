import pytest

from pyspark_kafka.domain.continuous.settings import (
    RestartLimits,
    RestartStrategy,
    interval_ms,
    option_conflicts,
)
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 second", 1_000),
        ("100 milliseconds", 100),
        (" 2  Minutes ", 120_000),
        ("1 hour", 3_600_000),
        ("1 day", 86_400_000),
        ("5s", 5_000),
        ("250", 250),
    ],
)
def test_intervals_are_those_of_spark(text, expected):
    assert interval_ms(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "0 seconds", "-1s", "1 fortnight"])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011  # the text differs
        interval_ms(text)


def conflicts(sink_servers: str, client: str = "kafka-python", **sink: str) -> list[str]:
    source = parse_source_options(
        {"kafka.bootstrap.servers": "one:1,two:2,", "subscribe": "t"}, QueryKind.STREAM
    )
    given = {"kafka.bootstrap.servers": sink_servers, "client": client, "topic": "out", **sink}
    return option_conflicts(source, parse_sink_options(given, QueryKind.STREAM))


def test_another_cluster_may_be_written_to_at_least_once():
    assert conflicts("elsewhere:1") == []


def test_exactly_once_needs_one_cluster():
    exactly_once = {"deliveryGuarantee": "exactly-once", "checkpointLocation": "/c"}
    assert conflicts("two:2, three:3", **exactly_once) == []
    (problem,) = conflicts("three:3, ,", **exactly_once)
    assert problem == (
        "deliveryGuarantee 'exactly-once' needs source and sink in the same Kafka cluster: the "
        "input's offsets are part of the output's transaction. Their 'kafka.bootstrap.servers' "
        "have no server in common"
    )


def test_source_and_sink_use_one_client():
    (problem,) = conflicts("one:1", "memory")
    assert problem == ("source and sink must use the same client, got 'kafka-python' and 'memory'")


LIMITS = RestartLimits(max_restarts=3, within_s=60, first_delay_s=1, max_delay_s=3)


def test_the_pause_grows_to_its_bound():
    strategy = RestartStrategy(LIMITS)
    assert [strategy.delay_after_failure(now) for now in (0, 10, 20)] == [1, 2, 3]


def test_the_pause_stays_at_its_bound_for_thousands_of_restarts():
    strategy = RestartStrategy(RestartLimits(max_restarts=3_000, max_delay_s=3))
    assert [strategy.delay_after_failure(0) for _ in range(3_000)][-1] == 3


def test_too_many_failures_within_the_time_are_given_up():
    strategy = RestartStrategy(LIMITS)
    for now in (0, 10, 20):
        strategy.delay_after_failure(now)
    assert strategy.delay_after_failure(59) is None
    assert strategy.delay_after_failure(59.9) is None


def test_old_failures_do_not_count():
    """One that is as old as the time is too old; a failure that was given up never counts."""
    strategy = RestartStrategy(LIMITS)
    for now in (0, 10, 20, 30):
        strategy.delay_after_failure(now)
    assert strategy.delay_after_failure(60) == 3
    assert strategy.delay_after_failure(75) == 3
    assert strategy.delay_after_failure(135) == 1


def test_without_restarts_the_first_failure_is_given_up():
    assert RestartStrategy(RestartLimits(max_restarts=0)).delay_after_failure(0) is None


@pytest.mark.parametrize(("restarts", "within"), [(-1, 60), (1, 0)])
def test_impossible_limits_are_refused(restarts, within):
    with pytest.raises(ValueError, match="limited"):
        RestartLimits(restarts, within)
