"""The command line of ``pyspark-kafka dead-letters``."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Final, final

from ..application.letters.dead_letter_log import LetterFilter
from ..domain.options.source_table import CLIENT
from .argument_values import (
    Commands,
    add_client,
    add_command,
    add_connection,
    connection_options,
    milliseconds,
    positive,
)

DEFAULT_LIMIT: Final = 100

_SUMMARY: Final = "list dead letters, or write their records back"

_LIST: Final = """\
List the records in a dead-letter topic, each once, with its number of letters.

The command only reads. It also understands the letters of Kafka Connect.
"""

_REPLAY: Final = """\
Write the records in a dead-letter topic back to the topics from which they came.

A record has its key, value, timestamp and headers, without those of the letter.
It goes to its partition, or with --to to the one that its key chooses. Records
with several letters are written once. The letters stay where they are: with
--group, the next call of the same group begins behind them.
"""


@final
@dataclass(frozen=True, slots=True)
class LetterSource:
    """A dead-letter topic, and which of its letters are wanted; ``options`` may hold secrets."""

    topic: str
    bootstrap_servers: str
    wanted: LetterFilter = field(default_factory=LetterFilter)
    client: str = CLIENT.default
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@final
@dataclass(frozen=True, slots=True)
class ListLettersSettings:
    """The letters to list; ``limit`` is the maximum number of records."""

    source: LetterSource
    limit: int = DEFAULT_LIMIT
    as_json: bool = False


@final
@dataclass(frozen=True, slots=True)
class ReplayLettersSettings:
    """The letters whose records are written back; to their own topics if ``to`` is ``None``."""

    source: LetterSource
    to: str | None = None
    group: str | None = None
    is_dry: bool = False
    as_json: bool = False


def add_dead_letters(commands: Commands) -> None:
    """Add the command ``dead-letters`` and its two."""
    both = commands.add_parser(
        "dead-letters", help=_SUMMARY, description=f"{_SUMMARY.capitalize()}."
    )
    actions = both.add_subparsers(required=True, metavar="command")
    listing = add_command(actions, "list", "list dead letters", _LIST, _list_settings)
    _add_source(listing)
    listing.add_argument(
        "--limit",
        metavar="N",
        type=positive,
        default=DEFAULT_LIMIT,
        help="list at most N records (default: %(default)s)",
    )
    listing.add_argument("--json", action="store_true", help="print a line of JSON per record")
    replay = add_command(actions, "replay", "write records back", _REPLAY, _replay_settings)
    _add_source(replay)
    replay.add_argument("--to", metavar="TOPIC", help="write all records to this topic")
    replay.add_argument(
        "--group",
        metavar="NAME",
        help="begin where this consumer group stopped, and commit what was replayed; use a group "
        "of its own for each set of filters",
    )
    replay.add_argument(
        "--dry-run", action="store_true", help="count records, and write and commit nothing"
    )
    replay.add_argument("--json", action="store_true", help="print the numbers as a line of JSON")


def _add_source(command: argparse.ArgumentParser) -> None:
    command.add_argument("--topic", required=True, help="the dead-letter topic")
    add_connection(command)
    add_client(command)
    command.add_argument("--from-topic", metavar="TOPIC", help="only records of this topic")
    command.add_argument(
        "--reason",
        metavar="NAME",
        dest="reasons",
        action="append",
        help="only records that could not be decoded for this reason, such as MALFORMED; may be "
        "repeated",
    )
    command.add_argument(
        "--offsets",
        metavar="FIRST:END",
        type=_offsets,
        help="only records with an offset from FIRST on and below END; either may be left out",
    )
    command.add_argument(
        "--until",
        metavar="TIME",
        type=milliseconds,
        help="only records with a timestamp before this one, such as 2026-01-31T12:00:00Z",
    )


def _list_settings(given: argparse.Namespace) -> ListLettersSettings:
    return ListLettersSettings(_source(given), given.limit, given.json)


def _replay_settings(given: argparse.Namespace) -> ReplayLettersSettings:
    if given.to == given.topic:
        given.error("--to names the dead-letter topic itself")
    return ReplayLettersSettings(_source(given), given.to, given.group, given.dry_run, given.json)


def _source(given: argparse.Namespace) -> LetterSource:
    reasons = None if given.reasons is None else frozenset(given.reasons)
    return LetterSource(
        given.topic,
        given.bootstrap_servers,
        LetterFilter(given.from_topic, reasons, given.offsets, given.until),
        given.client,
        connection_options(given),
    )


def _offsets(text: str) -> tuple[int, int]:
    first, separator, end = text.partition(":")
    bounds = first or "0", end or str(2**63 - 1)
    if not separator or not all(bound.isdecimal() for bound in bounds):
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form FIRST:END")
    return int(bounds[0]), int(bounds[1])
