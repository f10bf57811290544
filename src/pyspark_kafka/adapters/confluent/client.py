"""The client ``confluent``; its adapters are imported at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...domain.errors import requires_extra
from ...ports.client import Client

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ...domain.continuous.settings import ContinuousSettings
    from ...domain.options.sink import SinkOptions
    from ...domain.options.source import SourceOptions
    from ...ports.cluster import ClusterDescriber
    from ...ports.continuous import StreamClient
    from ...ports.reading import OffsetFetcher, RecordReader
    from ...ports.writing import RecordWriter


def _requires_confluent() -> AbstractContextManager[None]:
    return requires_extra("confluent", "confluent_kafka", "The client 'confluent'")


def _offset_fetcher(options: SourceOptions) -> OffsetFetcher:
    with _requires_confluent():
        from .offset_fetcher import ConfluentOffsetFetcher
    return ConfluentOffsetFetcher(options)


def _record_reader(options: SourceOptions) -> RecordReader:
    with _requires_confluent():
        from .record_reader import ConfluentRecordReader
    return ConfluentRecordReader(options)


def _record_writer(options: SinkOptions) -> RecordWriter:
    with _requires_confluent():
        from .record_writer import ConfluentRecordWriter
    return ConfluentRecordWriter(options)


def _check_sink(options: SinkOptions) -> None:
    with _requires_confluent():
        from .producer_config import producer_client_config
    producer_client_config(options.java)


def _stream_client(
    source: SourceOptions, sink: SinkOptions | None, _: ContinuousSettings
) -> StreamClient:
    with _requires_confluent():
        from .stream_client import ConfluentStreamClient
    return ConfluentStreamClient(source, sink)


def _cluster_describer(options: SourceOptions) -> ClusterDescriber:
    with _requires_confluent():
        from .cluster_describer import ConfluentClusterDescriber
    return ConfluentClusterDescriber(options)


def _preload() -> None:
    with _requires_confluent():
        from . import record_reader, record_writer, stream_client  # noqa: F401


CLIENT: Final = Client(
    _offset_fetcher,
    _record_reader,
    _record_writer,
    stream_client=_stream_client,
    check_sink=_check_sink,
    preload=_preload,
    cluster_describer=_cluster_describer,
)
"""Without transactions: librdkafka cannot end one that another process began."""
