"""``pyspark-kafka doctor``: check a cluster, and the prerequisites of queries."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Final

from ..domain.cluster.finding import Level, worst
from ..domain.text import printable
from .arguments import Commands, Connection, add_command, add_connection
from .output import ending_with_the_pipe, logs_redirected_to, print_whole, quantity

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ..domain.cluster.finding import Finding

_DOCTOR: Final = """\
Check what a query needs: versions, network, TLS, login, brokers and rights.

Each finding is ok, a warning or an error, with what to do next. The exit status is
0 if all is well, 3 if the worst finding is a warning, and 1 if it is an error.
Nothing is written to Kafka, and no secret is printed.
"""

_COLORS: Final = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "red"}
_LEVEL_WIDTH: Final = 7
_CHECK_WIDTH: Final = 15


def add_doctor(commands: Commands) -> None:
    """Add the command ``doctor``."""
    summary = "check a cluster, and what a query needs to use it"
    doctor = add_command(commands, "doctor", summary, _DOCTOR, run_doctor)
    add_connection(doctor)
    for name, metavar, text in (
        ("--topic", "TOPIC", "check this topic, and the rights to read and write it"),
        ("--group", "NAME", "check the rights on this consumer group"),
        ("--transactional-id", "ID", "check the rights on this transactional id"),
    ):
        doctor.add_argument(
            name, metavar=metavar, action="append", default=[], help=f"{text}; may be repeated"
        )
    doctor.add_argument("--json", action="store_true", help="print a line of JSON per finding")


def run_doctor(given: argparse.Namespace) -> int:
    """Print findings as they are made, and return the exit status of the worst.

    :raises PysparkKafkaError: if the options are invalid.
    """
    from ..application.cluster.doctor import Resources
    from ..bootstrap.tools import doctor_for
    from ..brokers import require_java

    show = _print_json if given.json else _print_row
    options = Connection.given(given).source_options(subscribePattern=".*")
    resources = Resources(tuple(given.topic), tuple(given.group), tuple(given.transactional_id))
    found: list[Finding] = []
    with (
        logs_redirected_to(logging.NullHandler()),
        ending_with_the_pipe(),
        doctor_for(options, resources, lambda: str(require_java())) as doctor,
    ):
        for finding in doctor.examine():
            found.append(finding)
            show(finding)
        if not given.json:
            print(_totals(found), flush=True)
    return worst(found).exit_status


def _print_json(finding: Finding) -> None:
    answer = {
        "check": finding.check,
        "level": finding.level.value,
        "summary": finding.summary,
        "advice": finding.advice,
    }
    print(json.dumps(answer), flush=True)


def _print_row(finding: Finding) -> None:
    """Print the level, the check and the summary of a finding; its advice is below."""
    from rich.table import Table
    from rich.text import Text

    row = Table.grid(padding=(0, 2))
    row.add_column(width=_LEVEL_WIDTH, no_wrap=True)
    row.add_column(width=_CHECK_WIDTH, no_wrap=True, style="dim")
    row.add_column()
    text = Text(printable(finding.summary))
    if finding.advice:
        text.append(f"\n{printable(finding.advice)}", "bold")
    row.add_row(Text(finding.level.value, _COLORS[finding.level]), finding.check, text)
    print_whole(row)


def _totals(found: Sequence[Finding]) -> str:
    counts = {level: sum(each.level is level for each in found) for level in Level}
    return (
        f"{quantity(counts[Level.ERROR], 'error')}, "
        f"{quantity(counts[Level.WARNING], 'warning')}, {counts[Level.OK]} ok"
    )
