from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_kafka.cli.parser import DemoSettings, parse_arguments
from pyspark_kafka.container import CLIENTS


def test_demo_without_options() -> None:
    """The demo needs no option: its broker is embedded and its client the library's default."""
    assert parse_arguments(["demo"]) == DemoSettings(
        bootstrap_servers=None, topic=None, client="kafka-python", events=60_000, spark_log=None
    )


def test_demo_with_options() -> None:
    """All options end up in the settings."""
    given = [
        *("demo", "--bootstrap-servers", "h:9092", "--client", "confluent"),
        *("--events", "100000", "--spark-log", "x.log"),
    ]
    assert parse_arguments(given) == DemoSettings(
        bootstrap_servers="h:9092", client="confluent", events=100_000, spark_log=Path("x.log")
    )


def test_demo_of_a_topic() -> None:
    """A topic of a cluster can be named."""
    settings = parse_arguments(["demo", "--bootstrap-servers", "h:9092", "--topic", "mine"])
    assert settings.topic == "mine"


@pytest.mark.parametrize("client", ["kafka-python", "confluent"])
def test_clients_are_those_of_the_library(client: str) -> None:
    """Every client that can be chosen is one that the library has."""
    assert parse_arguments(["demo", "--client", client]).client in CLIENTS


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([], "the following arguments are required: command"),
        (["demo", "--topic", "t"], "--topic needs --bootstrap-servers"),
        (["demo", "--events", "0"], "'0' is not a positive number"),
        (["demo", "--events", "many"], "'many' is not a positive number"),
        (["demo", "--events", "80001"], "more than 80000 --events need a Kafka"),
        (["demo", "--client", "java"], "invalid choice: 'java'"),
        (
            ["demo", "--bootstrap-servers", "h:1", "--topic", "t", "--events", "5"],
            "--events cannot go with --topic",
        ),
    ],
)
def test_what_cannot_be_run(
    given: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command line that makes no sense ends with status 2 and says why."""
    with pytest.raises(SystemExit) as ended:
        parse_arguments(given)
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


def test_help_tells_what_is_written_where(capsys: pytest.CaptureFixture[str]) -> None:
    """The help says that nothing is written to a topic of the user's."""
    with pytest.raises(SystemExit) as ended:
        parse_arguments(["demo", "--help"])
    assert ended.value.code == 0
    assert "nothing is written" in capsys.readouterr().out
