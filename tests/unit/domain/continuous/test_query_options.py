from __future__ import annotations

import pytest

from pyspark_kafka.domain.continuous.query_options import interval_ms, option_conflicts
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
def test_intervals_are_those_of_spark(text: str, expected: int) -> None:
    assert interval_ms(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "0 seconds", "-1s", "1 fortnight"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the text differs
        interval_ms(text)


def conflicts(sink_servers: str, client: str = "kafka-python", **sink: str) -> list[str]:
    source = parse_source_options(
        {"kafka.bootstrap.servers": "one:1,two:2,", "subscribe": "t"}, QueryKind.STREAM
    )
    given = {"kafka.bootstrap.servers": sink_servers, "client": client, "topic": "out", **sink}
    return option_conflicts(source, parse_sink_options(given, QueryKind.STREAM))


def test_another_cluster_may_be_written_to_at_least_once() -> None:
    assert conflicts("elsewhere:1") == []


def test_exactly_once_needs_one_cluster() -> None:
    exactly_once = {"deliveryGuarantee": "exactly-once", "checkpointLocation": "/c"}
    assert conflicts("two:2, three:3", **exactly_once) == []
    (problem,) = conflicts("three:3, ,", **exactly_once)
    assert problem == (
        "deliveryGuarantee 'exactly-once' needs source and sink in the same Kafka cluster: the "
        "input's offsets are part of the output's transaction. Their 'kafka.bootstrap.servers' "
        "have no server in common"
    )


def test_source_and_sink_use_one_client() -> None:
    (problem,) = conflicts("one:1", "memory")
    assert problem == ("source and sink must use the same client, got 'kafka-python' and 'memory'")
