"""A Kafka client, as the factories of its adapters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..domain.continuous.settings import ContinuousSettings
    from ..domain.options.sink import SinkOptions
    from ..domain.options.source import SourceOptions
    from .cluster import ClusterDescriber
    from .continuous import StreamClient
    from .reading import OffsetFetcher, RecordReader
    from .writing import RecordWriter, Transactions

    StreamClientFactory: TypeAlias = Callable[
        [SourceOptions, SinkOptions | None, ContinuousSettings], StreamClient
    ]


@final
@dataclass(frozen=True, slots=True)
class Client:
    """The factories of a client's adapters; each takes the options of a query or a sink.

    Entry points of the group ``pyspark_kafka.clients`` refer to objects of this class. An adapter
    connects when it is first used, and is closed with its container.
    """

    offset_fetcher: Callable[[SourceOptions], OffsetFetcher]
    record_reader: Callable[[SourceOptions], RecordReader]
    record_writer: Callable[[SinkOptions], RecordWriter] | None = None
    transactions: Callable[[SinkOptions], Transactions] | None = None
    """For exactly-once delivery: ends transactions that another process began."""

    stream_client: StreamClientFactory | None = None
    """For continuous queries; without a sink's options, it writes nothing."""

    check_sink: Callable[[SinkOptions], None] | None = None
    """Checks the settings of a sink as its writer does, without what a writer has to load.

    :raises OptionsError: if the client does not know or support a setting.
    """

    check_source: Callable[[SourceOptions], None] | None = None
    """Checks the settings of a source as its adapters do; without it, an ``offset_fetcher`` does.

    :raises OptionsError: if the client does not know or support a setting.
    :raises MissingDependencyError: if its package is not installed.
    """

    preload: Callable[[], None] | None = None
    """Imports what a first task needs, so that forked workers share it.

    Neither connects nor starts a thread.

    :raises ImportError: if a package is not installed.
    """

    cluster_describer: Callable[[SourceOptions], ClusterDescriber] | None = None
    """For the commands ``topics`` and ``doctor``."""
