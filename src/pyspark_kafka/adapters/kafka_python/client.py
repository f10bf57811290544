"""The client ``kafka-python``: its adapters, imported when one is first made."""

from __future__ import annotations

from typing import Final

from ...domain.continuous.settings import ContinuousSettings
from ...domain.options.sink import SinkOptions
from ...domain.options.source import SourceOptions
from ...ports.client import Client
from ...ports.cluster import ClusterDescriber
from ...ports.continuous import StreamClient
from ...ports.reading import OffsetFetcher, RecordReader
from ...ports.writing import RecordWriter, Transactions


def _offset_fetcher(options: SourceOptions) -> OffsetFetcher:
    from .offset_fetcher import KafkaPythonOffsetFetcher

    return KafkaPythonOffsetFetcher(options)


def _record_reader(options: SourceOptions) -> RecordReader:
    from .record_reader import KafkaPythonRecordReader

    return KafkaPythonRecordReader(options)


def _record_writer(options: SinkOptions) -> RecordWriter:
    from .record_writer import KafkaPythonRecordWriter

    return KafkaPythonRecordWriter(options)


def _check(options: SourceOptions | SinkOptions) -> None:
    from .settings import check_settings

    check_settings(options.java)


def _transactions(options: SinkOptions) -> Transactions:
    from .transactions import KafkaPythonTransactions

    return KafkaPythonTransactions(options)


def _stream_client(
    source: SourceOptions, sink: SinkOptions | None, continuous: ContinuousSettings
) -> StreamClient:
    from .stream_client import KafkaPythonStreamClient

    return KafkaPythonStreamClient(source, sink, continuous)


def _cluster_describer(options: SourceOptions) -> ClusterDescriber:
    from .cluster_describer import KafkaPythonClusterDescriber

    return KafkaPythonClusterDescriber(options)


def _preload() -> None:
    from . import record_reader, record_writer, stream_client  # noqa: F401


CLIENT: Final = Client(
    _offset_fetcher,
    _record_reader,
    _record_writer,
    _transactions,
    _stream_client,
    check_source=_check,
    check_sink=_check,
    preload=_preload,
    cluster_describer=_cluster_describer,
)
