"""``pyspark-kafka tail``: print the records of a topic as they arrive."""

from __future__ import annotations

import base64
import json
import logging
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ..domain.json_text import utc_text
from ..domain.options.source_table import INCLUDED
from ..domain.reading.offset_limits import AtOffset, Earliest, GlobalTimestamp, Latest, OnNoMatch
from ..domain.text import Rendering, printable, render
from .arguments import (
    Commands,
    Connection,
    add_command,
    add_connection,
    milliseconds,
    not_negative,
    positive,
)
from .output import ending_with_the_pipe, logs_redirected_to, until_interrupted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from ..application.reading.record_tail import RecordTail, TailStart
    from ..domain.options.source import SourceOptions

FORMATS: Final = ("avro", "protobuf")

_TAIL: Final = """\
Print the records of a topic as they come, until Ctrl-C.

Values are shown as text. "avro" and "protobuf" decode them by the options of a query:
  --as avro --option schema.registry.url=http://registry:8081
  --as protobuf --option valueSchema=order.proto
The command joins no consumer group and commits nothing.
"""


def add_tail(commands: Commands) -> None:
    """Add the command ``tail``."""
    summary = "print the records of a topic as they come"
    tail = add_command(commands, "tail", summary, _TAIL, run_tail)
    tail.add_argument("topic", metavar="TOPIC", help="the topic")
    add_connection(tail)
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


def _start(text: str) -> TailStart:
    if text == "earliest":
        return Earliest()
    if text == "latest":
        return Latest()
    if re.fullmatch(r"-?\d{1,18}", text):
        return AtOffset(int(text))
    return GlobalTimestamp(milliseconds(text), OnNoMatch.LATEST)


def run_tail(given: argparse.Namespace) -> int:
    """Print records, and return the exit status.

    :raises PysparkKafkaError: if the topic cannot be read.
    """
    from ..bootstrap.tools import record_tail_for

    options = _options(given)
    rendering = Rendering.TEXT if given.form in FORMATS else Rendering(given.form)
    show = record_json if given.json else record_line
    with (
        logs_redirected_to(logging.NullHandler()),
        ending_with_the_pipe(),
        until_interrupted(),
        record_tail_for(options) as tail,
    ):
        for row in islice(_rows(given, options, tail), given.count):
            print(show(row, rendering), flush=True)
    return 0


def _options(given: argparse.Namespace) -> SourceOptions:
    connection = Connection.given(given)
    # Lines have all columns, whatever the options of the query leave out.
    query = {option.name: "true" for option in INCLUDED.values()}
    if given.partition is None:
        query["subscribe"] = given.topic
    else:
        query["assign"] = json.dumps({given.topic: [given.partition]})
    if given.form in FORMATS:
        query["valueFormat"] = given.form
    names = {name.lower() for name, _ in (*connection.options, *query.items())}
    if names & {"valueformat", "keyformat"}:
        query |= {"mode": "PERMISSIVE", "includeErrors": "true"}
    return connection.source_options(**query)


def _rows(
    given: argparse.Namespace, options: SourceOptions, tail: RecordTail
) -> Iterator[dict[str, Any]]:
    starts = tail.starts(options.subscription, given.start)
    batches = tail.read(starts, tail.ends(starts)) if given.once else tail.follow(starts)
    for batch in batches:
        yield from batch.to_pylist()


def record_line(row: Mapping[str, Any], rendering: Rendering) -> str:
    """Return a record as one line: its time, place, key and value."""
    found = _record(row, rendering)
    place = f"{row['topic']}-{row['partition']} @ {row['offset']}"
    problem = f"  ({found['error']})" if "error" in found else ""
    cells = (found["timestamp"], place, _text(found["key"]), _text(found["value"]))
    return "  ".join(printable(cell) for cell in cells) + problem


def record_json(row: Mapping[str, Any], rendering: Rendering) -> str:
    """Return a record as one line of JSON."""
    return json.dumps(_record(row, rendering), default=_other)


def _record(row: Mapping[str, Any], rendering: Rendering) -> dict[str, Any]:
    key_rendering = Rendering.HEX if rendering is Rendering.HEX else Rendering.TEXT
    key, _ = _shown(row, "key", key_rendering)
    value, problem = _shown(row, "value", rendering)
    record = {
        "topic": row["topic"],
        "partition": row["partition"],
        "offset": row["offset"],
        "timestamp": utc_text(row["timestamp"]),
        "key": key,
        "value": value,
        "headers": [
            {"key": each["key"], "value": render(each["value"], key_rendering)[0]}
            for each in row["headers"] or ()
        ],
    }
    return record | {"error": problem} if problem else record


def _shown(row: Mapping[str, Any], column: str, rendering: Rendering) -> tuple[Any, str]:
    """Return a key or value, and its problem; a decoded one stays as it is."""
    failed: bytes | None = row.get(f"{column}Bytes")
    if failed is not None:
        return render(failed, Rendering.TEXT)[0], printable(row[f"{column}Error"])
    data = row[column]
    is_decoded = data is not None and not isinstance(data, bytes)
    return (data, "") if is_decoded else render(data, rendering)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=_other)


def _other(value: object) -> str:
    """Return a value for which JSON has no type: bytes as base64, numbers and times as text."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
