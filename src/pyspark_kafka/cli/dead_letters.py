"""``pyspark-kafka dead-letters``: list dead letters, and write their records back."""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING, Any

from ..application.letters.dead_letter_log import LetterSummary, ReplayStats
from ..bootstrap.tools import dead_letter_log_for, letter_replay_for
from ..domain.text import excerpt
from .connection import Connection
from .console import Console, quantity
from .process import ending_with_the_pipe, logs_redirected_to
from .progress_bar import advancing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..application.letters.dead_letter_log import LetterCount, Letters
    from ..domain.options.source import SourceOptions
    from ..domain.reading.ranges import OffsetRange
    from .dead_letter_arguments import LetterSource, ListLettersSettings, ReplayLettersSettings


def run_list(settings: ListLettersSettings) -> int:
    """List dead letters, and return the exit status.

    :raises PysparkKafkaError: if the topic cannot be read.
    """
    source = settings.source
    with logs_redirected_to(logging.NullHandler()):
        summary = LetterSummary(settings.limit)
        with dead_letter_log_for(_options(source), source.topic) as log:
            ranges = log.ranges()
            for found in _advancing(ranges, log.read(ranges, source.wanted)):
                summary.add(found)
        with ending_with_the_pipe():
            show = _print_json if settings.as_json else _print_table
            show(summary)
    return 0


def run_replay(settings: ReplayLettersSettings) -> int:
    """Write the records of dead letters back, and return the exit status.

    :raises PysparkKafkaError: if the topic cannot be read, or a record cannot be written.
    """
    source, options = settings.source, _options(settings.source)
    with (
        logs_redirected_to(logging.NullHandler()),
        dead_letter_log_for(options, source.topic) as log,
        letter_replay_for(options, settings.to, is_dry=settings.is_dry) as replay,
    ):
        ranges = log.ranges(*([log.committed(settings.group)] if settings.group else []))
        stats = ReplayStats()
        for found in _advancing(ranges, log.read(ranges, source.wanted, with_records=True)):
            stats += replay.write(found)
        replay.flush()
        if settings.group is not None and not settings.is_dry:
            log.commit(settings.group, ranges)
    if settings.as_json:
        print(json.dumps(_stats_json(stats)))
    else:
        _print_stats(stats, is_dry=settings.is_dry)
    return 0


def _advancing(ranges: Iterable[OffsetRange], found: Iterable[Letters]) -> Iterator[Letters]:
    """Yield what is found, and show how much of the ranges is read."""
    total = sum(each.size for each in ranges)
    return advancing("Reading", found, total=total, size=lambda each: each.records.num_rows)


def _options(source: LetterSource) -> SourceOptions:
    # Letters that retention deletes meanwhile are no longer listed.
    options = (("failOnDataLoss", "false"), *source.options)
    connection = Connection(source.bootstrap_servers, source.client, options)
    return connection.source_options(subscribe=source.topic)


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
    from rich.console import Console as RichConsole

    from .dead_letter_view import letter_table

    out = Console(sys.stdout)
    if summary.records:
        RichConsole(highlight=False).print(letter_table(summary))
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
