"""The client ``confluent``: its adapters, imported when one is first made."""

from __future__ import annotations

from functools import partial
from typing import Final

from ...domain.errors import requires_extra
from ...ports.client import Client
from ..client_package import ClientPackage

_PACKAGE: Final = ClientPackage(
    __package__, partial(requires_extra, "confluent", "confluent_kafka", "The client 'confluent'")
)
_producer_config: Final = _PACKAGE.made("producer_config", "producer_client_config")
_stream_client: Final = _PACKAGE.made("stream_client", "ConfluentStreamClient")

CLIENT: Final = Client(
    _PACKAGE.made("offset_fetcher", "ConfluentOffsetFetcher"),
    _PACKAGE.made("record_reader", "ConfluentRecordReader"),
    _PACKAGE.made("record_writer", "ConfluentRecordWriter"),
    stream_client=lambda source, sink, _settings: _stream_client(source, sink),
    check_sink=lambda options: _producer_config(options.java),
    preload=_PACKAGE.preload,
    cluster_describer=_PACKAGE.made("cluster_describer", "ConfluentClusterDescriber"),
)
"""Without transactions: librdkafka cannot end one that another process began."""
