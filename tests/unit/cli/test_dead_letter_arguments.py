"""The command line of ``dead-letters``."""

from __future__ import annotations

from typing import Final

import pytest

from pyspark_kafka.__main__ import main
from pyspark_kafka.application.letters.dead_letter_log import LetterFilter
from pyspark_kafka.cli.dead_letter_arguments import LetterSource
from pyspark_kafka.cli.parser import ListLettersSettings, ReplayLettersSettings, parse_arguments

GIVEN: Final = ("--topic", "letters", "--bootstrap-servers", "h:9092")


def test_a_topic_and_a_cluster_are_enough() -> None:
    """All letters are listed, or written back to their own topics."""
    source = LetterSource("letters", "h:9092")
    listed = parse_arguments(["dead-letters", "list", *GIVEN])
    assert listed == ListLettersSettings(source, limit=100)
    assert parse_arguments(["dead-letters", "replay", *GIVEN]) == ReplayLettersSettings(source)


def test_letters_can_be_selected() -> None:
    """By the topic of the record, its offset and timestamp, and by several reasons."""
    selected = parse_arguments(
        [
            *("dead-letters", "list", *GIVEN, "--from-topic", "orders", "--limit", "5", "--json"),
            *("--reason", "MALFORMED", "--reason", "BAD_UTF8", "--offsets", "7:9"),
            *("--until", "2026-01-02T03:04:05Z", "--client", "confluent"),
            *("--option", "kafka.security.protocol=SSL"),
        ]
    )
    wanted = LetterFilter("orders", frozenset({"MALFORMED", "BAD_UTF8"}), (7, 9), 1_767_323_045_000)
    options = (("kafka.security.protocol", "SSL"),)
    source = LetterSource("letters", "h:9092", wanted, "confluent", options)
    assert selected == ListLettersSettings(source, 5, as_json=True)


def test_a_replay_can_go_elsewhere() -> None:
    """And remember in a group how far it came, or only count."""
    given = ["--to", "fixed", "--group", "replays", "--dry-run"]
    assert parse_arguments(["dead-letters", "replay", *GIVEN, *given]) == ReplayLettersSettings(
        LetterSource("letters", "h:9092"), "fixed", "replays", is_dry=True
    )


@pytest.mark.parametrize(
    ("text", "offsets"), [(":9", (0, 9)), ("7:", (7, 2**63 - 1)), (":", (0, 2**63 - 1))]
)
def test_either_end_of_offsets_may_be_left_out(text: str, offsets: tuple[int, int]) -> None:
    """A range without an end goes to the largest offset that there is."""
    settings = parse_arguments(["dead-letters", "list", *GIVEN, "--offsets", text])
    assert isinstance(settings, ListLettersSettings)
    assert settings.source.wanted.offsets == offsets


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["--offsets", "5"], "'5' is not of the form FIRST:END"),
        (["--offsets", "1:-5"], "'1:-5' is not of the form FIRST:END"),
        (["--until", "tomorrow"], "'tomorrow' is not a time of ISO 8601"),
        (["--to", "letters"], "--to names the dead-letter topic itself"),
        (["--option", "kafka.sasl.password=secret"], "--command-config"),
    ],
)
def test_wrong_arguments_are_refused(
    given: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message says what is wrong, and a secret is not shown."""
    with pytest.raises(SystemExit):
        parse_arguments(["dead-letters", "replay", *GIVEN, *given])
    shown = capsys.readouterr().err
    assert problem in shown
    assert "secret;" not in shown


def test_a_time_without_a_zone_is_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result does not depend on where the command runs."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    settings = parse_arguments(["dead-letters", "list", *GIVEN, "--until", "1970-01-01T00:00:01"])
    assert isinstance(settings, ListLettersSettings)
    assert settings.source.wanted.until_ms == 1_000


def test_options_take_precedence_over_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    """As in the other commands: here the servers, which the option takes away."""
    given = ("--topic", "letters", "--bootstrap-servers", "127.0.0.1:1")
    options = ("kafka.bootstrap.servers=", "kafka.default.api.timeout.ms=300")
    listed = [*given, *(text for option in options for text in ("--option", option))]
    assert main(["dead-letters", "list", *listed]) == 1
    assert "'kafka.bootstrap.servers' must be specified" in capsys.readouterr().err
