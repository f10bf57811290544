"""``pyspark-kafka tail``: print the records of a topic as they come."""

from __future__ import annotations

import json
import logging
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..bootstrap.tools import record_tail_for
from .process import ending_with_the_pipe, logs_redirected_to, until_interrupted
from .tail_view import record_json, record_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..application.reading.record_tail import RecordTail
    from ..domain.options.source import SourceOptions
    from .tail_arguments import TailSettings


def run_tail(settings: TailSettings) -> int:
    """Print records, and return the exit status.

    :raises PysparkKafkaError: if the topic cannot be read.
    """
    options = _options(settings)
    show = record_json if settings.as_json else record_line
    with (
        logs_redirected_to(logging.NullHandler()),
        ending_with_the_pipe(),
        until_interrupted(),
        record_tail_for(options) as tail,
    ):
        for row in islice(_rows(settings, options, tail), settings.count):
            print(show(row, settings.rendering), flush=True)
    return 0


def _options(settings: TailSettings) -> SourceOptions:
    query = {"includeHeaders": "true"}
    if settings.partition is None:
        query["subscribe"] = settings.topic
    else:
        query["assign"] = json.dumps({settings.topic: [settings.partition]})
    given = {name.lower() for name, _ in settings.connection.options}
    if settings.value_format is not None:
        query["valueFormat"] = settings.value_format
    if given.union(map(str.lower, query)) & {"valueformat", "keyformat"}:
        query |= {"mode": "PERMISSIVE", "includeErrors": "true"}
    return settings.connection.source_options(**query)


def _rows(
    settings: TailSettings, options: SourceOptions, tail: RecordTail
) -> Iterator[dict[str, Any]]:
    starts = tail.starts(options.subscription, settings.start)
    ends = tail.ends(starts) if settings.is_once else None
    for batch in tail.follow(starts, ends):
        yield from batch.to_pylist()
