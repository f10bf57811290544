"""The records of a topic as they come."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ..application.reading.record_tail import RecordTail
from ..domain.continuous.settings import ContinuousSettings
from .container import closing_clients, container_for, require_stream_client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..domain.options.source import SourceOptions


@contextmanager
def record_tail_for(options: SourceOptions) -> Iterator[RecordTail]:
    """Yield what reads a topic, and close its clients afterwards. It writes no dead letters.

    :raises OptionsError: if the client is unknown, or values cannot be decoded as the options say.
    """
    options = replace(options, dead_letter_topic=None)
    with closing_clients(container_for(options)) as container:
        typed = None
        if options.values:
            schema = container.value_schemas().resolve()
            typed = container.typed_records(schema)
            options = replace(options, projection=typed.projection)
        make_client = require_stream_client(container.client(), options)
        with closing(make_client(options, None, ContinuousSettings(""))) as client:
            yield RecordTail(container.offset_fetcher(), client, typed)
