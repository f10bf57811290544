"""``pyspark-kafka dead-letters``: list dead letters, and write their records back."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from typing import TYPE_CHECKING, Any, Final

from ..domain.text import excerpt
from .arguments import (
    Commands,
    Connection,
    add_command,
    add_connection,
    milliseconds,
    positive,
)
from .output import (
    Console,
    advancing,
    ending_with_the_pipe,
    logs_redirected_to,
    new_table,
    print_whole,
    quantity,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.table import Table

    from ..application.letters.dead_letter_log import (
        LetterCount,
        LetterFilter,
        Letters,
        LetterSummary,
        ReplayStats,
    )
    from ..domain.options.source import SourceOptions
    from ..domain.reading.ranges import OffsetRange

DEFAULT_LIMIT: Final = 100

_SUMMARY: Final = "list dead letters, or write their records back"

_LIST: Final = """\
List the records in a dead-letter topic, each once, with its number of letters.

The command only reads. It also understands the letters of Kafka Connect. It
takes about 80 MB of memory for a million records.
"""

_REPLAY: Final = """\
Write the records in a dead-letter topic back to the topics from which they came.

A record has its key, value, timestamp and headers, without those of the letter.
It goes to its partition, or with --to to the one that its key chooses. A call
writes records with several letters once. The letters stay where they are: with
--group, the next call of the same group begins behind them.
"""


def add_dead_letters(commands: Commands) -> None:
    """Add the command ``dead-letters`` and its two subcommands."""
    both = commands.add_parser(
        "dead-letters", help=_SUMMARY, description=f"{_SUMMARY.capitalize()}."
    )
    actions = both.add_subparsers(required=True, metavar="command")
    listing = add_command(actions, "list", "list dead letters", _LIST, run_list)
    _add_source(listing)
    listing.add_argument(
        "--limit",
        metavar="N",
        type=positive,
        default=DEFAULT_LIMIT,
        help="list at most N records (default: %(default)s)",
    )
    listing.add_argument("--json", action="store_true", help="print a line of JSON per record")
    replay = add_command(actions, "replay", "write records back", _REPLAY, run_replay)
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


def _offsets(text: str) -> tuple[int, int]:
    first, separator, end = text.partition(":")
    bounds = first or "0", end or str(2**63 - 1)
    if not separator or not all(bound.isdecimal() for bound in bounds):
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form FIRST:END")
    return int(bounds[0]), int(bounds[1])


def run_list(given: argparse.Namespace) -> int:
    """List dead letters, and return the exit status.

    :raises PysparkKafkaError: if the topic cannot be read.
    """
    from ..application.letters.dead_letter_log import LetterSummary
    from ..bootstrap.tools import dead_letter_log_for

    with logs_redirected_to(logging.NullHandler()):
        summary = LetterSummary(given.limit)
        with dead_letter_log_for(_options(given), given.topic) as log:
            ranges = log.ranges()
            for found in _advancing(ranges, log.read(ranges, _wanted(given))):
                summary.add(found)
        with ending_with_the_pipe():
            show = _print_json if given.json else _print_table
            show(summary)
    return 0


def run_replay(given: argparse.Namespace) -> int:
    """Write the records of dead letters back, and return the exit status.

    :raises PysparkKafkaError: if the topic cannot be read, or a record cannot be written.
    """
    if given.to == given.topic:
        given.error("--to names the dead-letter topic itself")
    from ..application.letters.dead_letter_log import ReplayStats
    from ..bootstrap.tools import dead_letter_log_for, letter_replay_for

    options, stats = _options(given), ReplayStats()
    with (
        logs_redirected_to(logging.NullHandler()),
        dead_letter_log_for(options, given.topic) as log,
        letter_replay_for(options, given.to, is_dry=given.dry_run) as replay,
    ):
        ranges = log.ranges(*([log.committed(given.group)] if given.group else []))
        for found in _advancing(ranges, log.read(ranges, _wanted(given), with_records=True)):
            stats += replay.write(found)
        replay.flush()
        if given.group is not None and not given.dry_run:
            log.commit(given.group, ranges)
    with ending_with_the_pipe():
        if given.json:
            print(json.dumps(_stats_json(stats)))
        else:
            _print_stats(stats, is_dry=given.dry_run)
    return 0


def _advancing(ranges: Iterable[OffsetRange], found: Iterable[Letters]) -> Iterator[Letters]:
    """Yield the letters that are found, and show how much of the ranges is read."""
    total = sum(each.size for each in ranges)
    return advancing("Reading", found, total=total, size=lambda each: each.records.num_rows)


def _options(given: argparse.Namespace) -> SourceOptions:
    # Letters that retention deletes meanwhile are no longer listed.
    connection = Connection.given(given, ("failOnDataLoss", "false"))
    return connection.source_options(subscribe=given.topic)


def _wanted(given: argparse.Namespace) -> LetterFilter:
    from ..application.letters.dead_letter_log import LetterFilter

    reasons = None if given.reasons is None else frozenset(given.reasons)
    return LetterFilter(given.from_topic, reasons, given.offsets, given.until)


def _print_json(summary: LetterSummary) -> None:
    for count in summary.records.values():
        print(json.dumps(_json(count)), flush=True)
    if summary.total > len(summary.records):
        print(_more(summary), file=sys.stderr)


def _json(count: LetterCount) -> dict[str, Any]:
    letter = count.letter
    return {
        "topic": letter.origin.topic,
        "partition": letter.origin.partition,
        "offset": letter.offset,
        "reason": letter.reason,
        "error": letter.error,
        "query": letter.query,
        "letters": count.letters,
    }


def _print_table(summary: LetterSummary) -> None:
    out = Console(sys.stdout)
    if summary.records:
        print_whole(_letter_table(summary))
    if summary.total > len(summary.records):
        out.line(_more(summary))
    counts = summary.reasons.most_common()
    reasons = ", ".join(f"{count:,} {excerpt(name)}" for name, count in counts)
    out.line(
        f"{quantity(summary.total, 'record')} in {quantity(summary.letters, 'letter')}"
        + (f": {reasons}" if reasons else "")
    )
    if summary.others:
        out.line(f"{quantity(summary.others, 'other record')} in the topic: no dead letters")


def _letter_table(summary: LetterSummary) -> Table:
    """Return a row for each record, in the order of the dead-letter topic."""
    from rich.text import Text

    table = new_table(["topic"], "partition", "offset")
    table.add_column("reason", no_wrap=True)
    table.add_column("error")
    table.add_column("letters", justify="right", no_wrap=True)
    for count in summary.records.values():
        letter = count.letter
        table.add_row(
            Text(excerpt(letter.origin.topic)),
            str(letter.origin.partition),
            str(letter.offset),
            Text(excerpt(letter.reason)),
            Text(excerpt(letter.error)),
            f"{count.letters:,}",
        )
    return table


def _more(summary: LetterSummary) -> str:
    hidden = summary.total - len(summary.records)
    return f"and {quantity(hidden, 'more record')}; raise --limit to list them"


def _stats_json(stats: ReplayStats) -> dict[str, Any]:
    return {
        "records": dict(sorted(stats.replayed.items())),
        "duplicates": stats.duplicates,
        "unwanted": stats.unwanted,
        "others": stats.others,
    }


def _print_stats(stats: ReplayStats, *, is_dry: bool) -> None:
    out = Console(sys.stdout)
    wrote = "Would write" if is_dry else "Wrote"
    for topic, count in sorted(stats.replayed.items()):
        out.line(f"{wrote} {quantity(count, 'record')} to '{excerpt(topic)}'")
    if not stats.replayed:
        out.line(f"{wrote} no records")
    for count, what, why in (
        (stats.duplicates, "letter", "further letters of the same records"),
        (stats.unwanted, "letter", "not selected"),
        (stats.others, "record", "no dead letters"),
    ):
        if count:
            out.line(f"Skipped {quantity(count, what)}: {why}")
