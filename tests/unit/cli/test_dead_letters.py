from argparse import Namespace
from typing import Final

import pytest

from pyspark_kafka.__main__ import main
from pyspark_kafka.application.letters.dead_letter_log import LetterFilter
from pyspark_kafka.cli.arguments import Connection
from pyspark_kafka.cli.dead_letters import _wanted
from tests.unit.cli.arguments import parsed, refused

GIVEN: Final = ("--topic", "letters", "--bootstrap-servers", "h:9092")


def test_a_topic_and_a_cluster_are_enough():
    listed, replayed = given("list"), given("replay")
    assert (listed.topic, listed.limit, listed.json) == ("letters", 100, False)
    assert (replayed.to, replayed.group, replayed.dry_run, replayed.json) == (
        None,
        None,
        False,
        False,
    )
    for each in (listed, replayed):
        assert each.topic == "letters"
        assert Connection.given(each) == Connection("h:9092")
        assert _wanted(each) == LetterFilter()


def test_letters_can_be_selected():
    selected = given(
        *("list", "--from-topic", "orders", "--limit", "5", "--json"),
        *("--reason", "MALFORMED", "--reason", "BAD_UTF8", "--offsets", "7:9"),
        *("--until", "2026-01-02T03:04:05Z", "--client", "confluent"),
        *("--option", "kafka.security.protocol=SSL"),
    )
    reasons = frozenset({"MALFORMED", "BAD_UTF8"})
    assert _wanted(selected) == LetterFilter("orders", reasons, (7, 9), 1_767_323_045_000)
    options = (("kafka.security.protocol", "SSL"),)
    assert Connection.given(selected) == Connection("h:9092", "confluent", options)
    assert (selected.limit, selected.json) == (5, True)


def test_a_replay_can_go_elsewhere():
    replayed = given("replay", "--to", "fixed", "--group", "replays", "--dry-run")
    assert (replayed.to, replayed.group, replayed.dry_run) == ("fixed", "replays", True)


def given(command: str, *options: str) -> Namespace:
    return Namespace(**parsed("dead-letters", command, *GIVEN, *options))


@pytest.mark.parametrize(
    ("text", "offsets"), [(":9", (0, 9)), ("7:", (7, 2**63 - 1)), (":", (0, 2**63 - 1))]
)
def test_either_end_of_offsets_may_be_left_out(text, offsets):
    assert given("list", "--offsets", text).offsets == offsets


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--offsets", "5"], "'5' is not of the form FIRST:END"),
        (["--offsets", "1:-5"], "'1:-5' is not of the form FIRST:END"),
        (["--until", "tomorrow"], "'tomorrow' is not a time of ISO 8601"),
        (["--to", "letters"], "--to names the dead-letter topic itself"),
        (["--option", "kafka.sasl.password=secret"], "--command-config"),
    ],
)
def test_wrong_arguments_are_refused(options, problem, capsys):
    shown = refused(["dead-letters", "replay", *GIVEN, *options], capsys)
    assert problem in shown
    assert "secret;" not in shown


def test_a_time_without_a_zone_is_in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert given("list", "--until", "1970-01-01T00:00:01").until == 1_000


def test_options_take_precedence_over_arguments(capsys):
    """Options win in all commands: here the option removes the servers."""
    cluster = ("--topic", "letters", "--bootstrap-servers", "127.0.0.1:1")
    options = ("kafka.bootstrap.servers=", "kafka.default.api.timeout.ms=300")
    listed = [*cluster, *(text for option in options for text in ("--option", option))]
    assert main(["dead-letters", "list", *listed]) == 1
    assert "'kafka.bootstrap.servers' must be specified" in capsys.readouterr().err
