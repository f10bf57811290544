"""What can be known of a client before it connects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..domain.errors import OptionsError
from ..domain.options.sink import SinkOptions, dead_letter_sink
from ..domain.options.source import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ports.client import Client
    from ..ports.writing.record_writer import RecordWriter


def check_writing(client: Client, options: SinkOptions) -> None:
    """Check that a client can write as a sink's options demand.

    :raises OptionsError: if it does not support writing or the delivery guarantee.
    """
    writer_factory(client, options)
    if options.is_exactly_once and client.transactions is None:
        problem = (
            f"deliveryGuarantee 'exactly-once' is not supported by the client '{options.client}', "
            "which cannot commit transactions that another process began. Set 'client' to "
            "'kafka-python'"
        )
        raise OptionsError([problem])


def check_dead_letters(client: Client, options: SourceOptions) -> None:
    """Check what can be known of a query's dead letters without connecting.

    :raises OptionsError: if the client cannot write, or a setting of its producer is invalid.
    """
    if options.dead_letter_topic is not None:
        sink = dead_letter_sink(options, options.dead_letter_topic)
        check_writing(client, sink)
        if client.check_sink is not None:
            client.check_sink(sink)


def writer_factory(
    client: Client, options: SourceOptions | SinkOptions
) -> Callable[[SinkOptions], RecordWriter]:
    """Return the factory of a client's writers.

    :raises OptionsError: if it has none.
    """
    if client.record_writer is None:
        raise OptionsError([f"Client '{options.client}' only reads: it has no writer"])
    return client.record_writer
