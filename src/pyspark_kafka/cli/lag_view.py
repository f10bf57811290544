"""The lag of a query as a table, drawn with rich."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, final

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table
from rich.text import Text

from ..application.lag.monitor import LagSnapshot
from ..domain.checkpoints.checkpoint_log import CheckpointedBatch
from ..domain.lag.lag import PartitionLag
from ..domain.lag.trend import Direction, Trend
from .output import new_list, new_table, quantity

_BAR_WIDTH: Final = 12
_OTHER_LINES: Final = 14
"""Lines of a screen that do not show partitions."""

MAX_ROWS: Final = 200
"""The lines for partitions of a table that is printed once; the largest lag comes first."""

_COLORS: Final = {
    Direction.CAUGHT_UP: "green",
    Direction.CATCHING_UP: "green",
    Direction.KEEPING_PACE: "yellow",
    Direction.FALLING_BEHIND: "red",
    Direction.WAITING: "yellow",
    Direction.UNKNOWN: "dim",
}


@final
@dataclass(frozen=True, slots=True)
class LagView:
    """A snapshot, as a screen; ``problem`` is the reason why no newer one exists."""

    snapshot: LagSnapshot
    checkpoint: str
    servers: str
    now_ms: int
    problem: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the snapshot within the height of the console."""
        yield Group(*self.parts(options, max(3, console.height - _OTHER_LINES)))
        if self.problem:
            yield Text(self.problem, "red")

    def parts(self, options: ConsoleOptions, room: int = MAX_ROWS) -> list[Table | Text]:
        """Return the tables and texts of the snapshot, with ``room`` lines for partitions."""
        symbols = _ASCII if options.ascii_only else _UNICODE
        return [self._head(symbols), *self._body(symbols, room)]

    def _head(self, symbols: _Symbols) -> Table:
        head = new_list()
        head.add_row("checkpoint", Text(self.checkpoint))
        head.add_row("kafka", Text(self.servers))
        for name, text in self._batches():
            head.add_row(name, text)
        if self.snapshot.sources:
            head.add_row("lag", _total(self.snapshot, symbols))
            head.add_row("trend", _trend(self.snapshot.trend))
        return head

    def _batches(self) -> list[tuple[str, str]]:
        state = self.snapshot.state
        lines = []
        if state.committed is None:
            lines.append(("committed", "no batch yet"))
        else:
            lines.append(("committed", batch_text(state.committed, self.now_ms)))
        if state.in_flight is not None:
            size = f", {quantity(state.offsets_in_flight, 'offset')}" if state.committed else ""
            lines.append(("in flight", batch_text(state.in_flight, self.now_ms) + size))
        return lines

    def _body(self, symbols: _Symbols, room: int) -> list[Table | Text]:
        snapshot = self.snapshot
        if snapshot.state.committed is None:
            return []
        if not snapshot.state.committed.offsets:
            return [Text("The query has no Kafka source.", "yellow")]
        body: list[Table | Text] = [_table(snapshot, symbols, room)]
        if not snapshot.is_exact:
            hint = "an upper bound in offsets, which includes transaction markers"
            body.append(Text(f"{symbols.at_most} {hint}", "dim"))
        if snapshot.gone:
            names = ", ".join(map(str, snapshot.gone[:10]))
            more = f" and {len(snapshot.gone) - 10} more" if len(snapshot.gone) > 10 else ""
            body.append(Text(f"no longer in Kafka: {names}{more}", "red"))
        return body


@final
@dataclass(frozen=True, slots=True)
class _Symbols:
    at_most: str
    bar: str


_UNICODE: Final = _Symbols("≤", "█")
_ASCII: Final = _Symbols("<=", "#")


def _table(snapshot: LagSnapshot, symbols: _Symbols, room: int) -> Table:
    rows = sorted(
        ((source, each) for source, lag in snapshot.sources.items() for each in lag.partitions),
        key=lambda row: (-row[1].lag, row[0], row[1].partition),
    )
    shown = rows if len(rows) <= room else rows[: room - 1]
    has_notes = any(_note(each) for _, each in rows)
    names = ["source", "topic"] if len(snapshot.sources) > 1 else ["topic"]
    table = new_table(names, "partition", "consumed", "latest")
    table.show_footer = True
    hidden = len(rows) - len(shown)
    table.columns[len(names) - 1].footer = f"total (+ {hidden:,} more)" if hidden else "total"
    total = _number(snapshot.total, symbols, is_exact=snapshot.is_exact)
    table.add_column("lag", total, justify="right", no_wrap=True, style="bold")
    table.add_column("", min_width=_BAR_WIDTH)
    if has_notes:
        table.add_column("")
    largest = max((each.lag for _, each in rows), default=0)
    for source, each in shown:
        cells = [
            *([Text(source)] if len(snapshot.sources) > 1 else []),
            *_cells(each, symbols, largest),
        ]
        table.add_row(*cells, *([Text(_note(each), "red")] if has_notes else []))
    return table


def _cells(lag: PartitionLag, symbols: _Symbols, largest: int) -> tuple[str | Text, ...]:
    filled = -(-_BAR_WIDTH * lag.lag // largest) if largest else 0
    return (
        Text(lag.partition.topic),
        str(lag.partition.partition),
        f"{lag.consumed:,}",
        f"{lag.latest:,}",
        _number(lag.lag, symbols, is_exact=lag.is_exact),
        Text(symbols.bar * filled, "cyan"),
    )


def _note(lag: PartitionLag) -> str:
    if lag.is_truncated:
        return "ends before the consumed offset"
    return f"{lag.expired:,} deleted unread" if lag.expired else ""


def _number(number: int, symbols: _Symbols, *, is_exact: bool) -> str:
    return f"{number:,}" if is_exact else f"{symbols.at_most} {number:,}"


def _total(snapshot: LagSnapshot, symbols: _Symbols) -> Text:
    numbers = snapshot.numbers
    left = quantity(snapshot.total, "record")
    text = Text(left if snapshot.is_exact else f"{symbols.at_most} {left}", "bold")
    if numbers:
        average = snapshot.total / len(numbers)
        bounds = f"min {min(numbers):,}, avg {average:,.1f}, max {max(numbers):,}"
        text.append(f"  (by partition: {bounds})", "dim")
    return text


def _trend(trend: Trend) -> Text:
    text = Text(_direction(trend), _COLORS[trend.direction])
    rates = []
    if trend.read is not None:
        rates.append(f"{trend.read:,.0f}/s read")
    if trend.arrived is not None:
        rates.append(f"{trend.arrived:,.0f}/s arrive")
    if rates:
        text.append(f"  ({', '.join(rates)})", "dim")
    return text


def _direction(trend: Trend) -> str:
    if trend.direction is Direction.UNKNOWN:
        return "known after two commits"
    if trend.direction is Direction.WAITING and trend.seconds_waited is not None:
        return f"no batch was committed for {duration(trend.seconds_waited)}"
    if trend.seconds_left is not None:
        return f"{trend.direction.value}, about {duration(trend.seconds_left)} left at this pace"
    return str(trend.direction.value)


def batch_text(batch: CheckpointedBatch, now_ms: int) -> str:
    """Return the number of a batch, when it began, and how long ago."""
    if batch.timestamp_ms is None:
        return f"batch {batch.batch_id:,}"
    begun = datetime.fromtimestamp(batch.timestamp_ms / 1_000, UTC).astimezone()
    age = duration(max(0, now_ms - batch.timestamp_ms) / 1_000)
    return f"batch {batch.batch_id:,}, started {begun:%Y-%m-%d %H:%M:%S}, {age} ago"


def duration(seconds: float) -> str:
    """Return a duration in its largest unit that makes at least 2."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:,.0f} s"
