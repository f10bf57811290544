"""What a Kafka client is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..domain.options import SinkOptions, SourceOptions
    from .offset_fetcher import OffsetFetcher
    from .record_reader import RecordReader
    from .record_writer import RecordWriter
    from .transactions import Transactions


@final
@dataclass(frozen=True, slots=True)
class Client:
    """A client, by what makes its adapters from the options of a query or a sink.

    An object of this class is what an entry point of the group ``pyspark_kafka.clients`` names.
    Nothing connects before an adapter is used; each is closed when its container is.
    """

    offset_fetcher: Callable[[SourceOptions], OffsetFetcher]
    record_reader: Callable[[SourceOptions], RecordReader]
    record_writer: Callable[[SinkOptions], RecordWriter] | None = None
    transactions: Callable[[SinkOptions], Transactions] | None = None
    """For exactly-once: ends transactions that another process began."""

    preload: Callable[[], None] | None = None
    """Imports and compiles what a first task needs, so that forked workers share it.

    Raises ``ImportError`` if a package is not installed. Nothing connects, no thread starts.
    """
