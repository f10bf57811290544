"""The command line of ``pyspark-kafka tail``."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ..domain.reading.offset_limits import AtOffset, Earliest, GlobalTimestamp, Latest, OnNoMatch
from ..domain.text import Rendering
from .argument_values import (
    Commands,
    add_client,
    add_command,
    add_connection,
    milliseconds,
    not_negative,
    positive,
)
from .connection import Connection

if TYPE_CHECKING:
    from ..application.reading.record_tail import TailStart

FORMATS: Final = ("avro", "protobuf")

_TAIL: Final = """\
Print the records of a topic as they come, until Ctrl-C.

Values are shown as text. "avro" and "protobuf" decode them by the options of a query:
  --as avro --option schema.registry.url=http://registry:8081
  --as protobuf --option valueSchema=order.proto
The command joins no consumer group and commits nothing.
"""


@final
@dataclass(frozen=True, slots=True)
class TailSettings:
    """The records to print; ``value_format`` decodes values, and ``rendering`` shows bytes."""

    topic: str
    connection: Connection
    start: TailStart
    partition: int | None = None
    count: int | None = None
    rendering: Rendering = Rendering.TEXT
    value_format: str | None = None
    is_once: bool = False
    as_json: bool = False


def add_tail(commands: Commands) -> None:
    """Add the command ``tail``."""
    summary = "print the records of a topic as they come"
    tail = add_command(commands, "tail", summary, _TAIL, _settings)
    tail.add_argument("topic", metavar="TOPIC", help="the topic")
    add_connection(tail)
    add_client(tail)
    tail.add_argument(
        "--from",
        metavar="START",
        dest="start",
        type=_start,
        default=Latest(),
        help="'earliest', 'latest' (the default), an offset, a negative number of offsets before "
        "the end, or a time such as 2026-01-31T12:00:00Z",
    )
    tail.add_argument("--partition", metavar="N", type=not_negative, help="only this partition")
    tail.add_argument("--count", metavar="N", type=positive, help="end after N records")
    tail.add_argument(
        "--once", action="store_true", help="end at what is the end of the topic at the start"
    )
    tail.add_argument(
        "--as",
        dest="form",
        choices=[*(each.value for each in Rendering), *FORMATS],
        default=Rendering.TEXT.value,
        help="how values are shown (default: %(default)s)",
    )
    tail.add_argument("--json", action="store_true", help="print a line of JSON per record")


def _settings(given: argparse.Namespace) -> TailSettings:
    is_format = given.form in FORMATS
    return TailSettings(
        given.topic,
        Connection.given(given),
        given.start,
        given.partition,
        given.count,
        Rendering.TEXT if is_format else Rendering(given.form),
        given.form if is_format else None,
        given.once,
        given.json,
    )


def _start(text: str) -> TailStart:
    if text == "earliest":
        return Earliest()
    if text == "latest":
        return Latest()
    if re.fullmatch(r"-?\d{1,18}", text):
        return AtOffset(int(text))
    return GlobalTimestamp(milliseconds(text), OnNoMatch.LATEST)
