"""The lag of a query for people, drawn with rich."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, final

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from ..application.lag_trend import Direction, Trend

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from ..application.lag_monitor import LagSnapshot
    from ..domain.checkpoint_log import CheckpointedBatch
    from ..domain.lag import PartitionLag

_BAR: Final = 12
_LINES_AROUND: Final = 14
"""Lines of a screen that are not a partition's."""

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
    """One look, as a screen; ``problem`` is why there is no newer one."""

    look: LagSnapshot
    checkpoint: str
    servers: str
    now_ms: int
    problem: str = ""
    is_cut_to_screen: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it, as wide and as high as the console is."""
        signs = _ASCII if options.ascii_only else _SIGNS
        room = max(3, console.height - _LINES_AROUND) if self.is_cut_to_screen else None
        yield Group(self._head(signs), *self._body(signs, room))
        if self.problem:
            yield Text(self.problem, "red")

    def _head(self, signs: _Signs) -> Table:
        head = Table.grid(padding=(0, 2))
        head.add_column(style="dim", no_wrap=True)
        head.add_column()
        head.add_row("checkpoint", Text(self.checkpoint))
        head.add_row("kafka", Text(self.servers))
        for name, text in self._batches():
            head.add_row(name, text)
        if self.look.sources:
            head.add_row("lag", _total(self.look, signs))
            head.add_row("trend", _trend(self.look.trend))
        return head

    def _batches(self) -> list[tuple[str, str]]:
        state = self.look.state
        lines = []
        if state.committed is None:
            lines.append(("committed", "no batch yet"))
        else:
            lines.append(("committed", _batch(state.committed, self.now_ms)))
        if state.in_flight is not None:
            size = f", {_some(state.offsets_in_flight, 'offset')}" if state.committed else ""
            lines.append(("in flight", _batch(state.in_flight, self.now_ms) + size))
        return lines

    def _body(self, signs: _Signs, room: int | None) -> list[Table | Text]:
        look = self.look
        if look.state.committed is None:
            return []
        if not look.state.committed.offsets:
            return [Text("The query has no source that reads from Kafka.", "yellow")]
        body: list[Table | Text] = [_table(look, signs, room)]
        if not look.is_exact:
            body.append(Text(f"{signs.at_most} offsets, of which markers are not taken out", "dim"))
        if look.gone:
            names = ", ".join(map(str, look.gone[:10]))
            more = f" and {len(look.gone) - 10} more" if len(look.gone) > 10 else ""
            body.append(Text(f"not in Kafka any more: {names}{more}", "red"))
        return body


@final
@dataclass(frozen=True, slots=True)
class _Signs:
    at_most: str
    bar: str


_SIGNS: Final = _Signs("≤", "█")
_ASCII: Final = _Signs("<=", "#")


def _table(look: LagSnapshot, signs: _Signs, room: int | None) -> Table:
    rows = sorted(
        ((source, each) for source, lag in look.sources.items() for each in lag.partitions),
        key=lambda row: (-row[1].behind, row[0], row[1].partition),
    )
    shown = rows if room is None or len(rows) <= room else rows[: room - 1]
    has_notes = any(_note(each) for _, each in rows)
    table = Table(box=box.SIMPLE_HEAD, show_footer=True, pad_edge=False)
    if len(look.sources) > 1:
        table.add_column("source")
    table.add_column("topic", "total" if len(shown) == len(rows) else _left_out(rows, len(shown)))
    for heading in ("partition", "consumed", "latest"):
        table.add_column(heading, justify="right", no_wrap=True)
    total = _number(look.behind, signs, is_exact=look.is_exact)
    table.add_column("lag", total, justify="right", no_wrap=True, style="bold")
    table.add_column("", min_width=_BAR)
    if has_notes:
        table.add_column("")
    most = max((each.behind for _, each in rows), default=0)
    for source, each in shown:
        cells = [*([source] if len(look.sources) > 1 else []), *_cells(each, signs, most)]
        table.add_row(*cells, *([Text(_note(each), "red")] if has_notes else []))
    return table


def _left_out(rows: list[tuple[str, PartitionLag]], shown: int) -> str:
    return f"total (+ {len(rows) - shown:,} more)"


def _cells(lag: PartitionLag, signs: _Signs, most: int) -> tuple[str | Text, ...]:
    filled = -(-_BAR * lag.behind // most) if most else 0
    return (
        Text(lag.partition.topic),
        str(lag.partition.partition),
        f"{lag.consumed:,}",
        f"{lag.latest:,}",
        _number(lag.behind, signs, is_exact=lag.is_exact),
        Text(signs.bar * filled, "cyan"),
    )


def _note(lag: PartitionLag) -> str:
    if lag.is_cut_short:
        return "ends before what was consumed"
    return f"{lag.expired:,} deleted unread" if lag.expired else ""


def _number(number: int, signs: _Signs, *, is_exact: bool) -> str:
    return f"{number:,}" if is_exact else f"{signs.at_most} {number:,}"


def _some(number: int, unit: str) -> str:
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def _total(look: LagSnapshot, signs: _Signs) -> Text:
    numbers = look.numbers
    left = _some(look.behind, "record")
    text = Text(left if look.is_exact else f"{signs.at_most} {left}", "bold")
    if numbers:
        mean = look.behind / len(numbers)
        text.append(
            f"  (by partition: min {min(numbers):,}, avg {mean:,.1f}, max {max(numbers):,})", "dim"
        )
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
        return "two commits have to be seen to tell"
    if trend.direction is Direction.WAITING and trend.seconds_waited is not None:
        return f"no batch was committed for {duration(trend.seconds_waited)}"
    if trend.seconds_left is not None:
        return f"{trend.direction.value}, about {duration(trend.seconds_left)} left at this pace"
    return str(trend.direction.value)


def _batch(batch: CheckpointedBatch, now_ms: int) -> str:
    if batch.timestamp_ms is None:
        return f"batch {batch.batch_id:,}"
    begun = datetime.fromtimestamp(batch.timestamp_ms / 1_000, UTC).astimezone()
    age = duration(max(0, now_ms - batch.timestamp_ms) / 1_000)
    return f"batch {batch.batch_id:,}, begun {begun:%Y-%m-%d %H:%M:%S}, {age} ago"


def duration(seconds: float) -> str:
    """Give a duration in the largest unit of which there are two or more."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:,.0f} s"
