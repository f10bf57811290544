"""The client ``kafka-python``: its adapters, imported when one is first made."""

from __future__ import annotations

from typing import Final

from ...ports.client import Client
from ..client_package import ClientPackage

_PACKAGE: Final = ClientPackage(__package__)
_check_settings: Final = _PACKAGE.made("settings", "check_settings")

CLIENT: Final = Client(
    _PACKAGE.made("offset_fetcher", "KafkaPythonOffsetFetcher"),
    _PACKAGE.made("record_reader", "KafkaPythonRecordReader"),
    _PACKAGE.made("record_writer", "KafkaPythonRecordWriter"),
    _PACKAGE.made("transactions", "KafkaPythonTransactions"),
    _PACKAGE.made("stream_client", "KafkaPythonStreamClient"),
    check_source=lambda options: _check_settings(options.java),
    check_sink=lambda options: _check_settings(options.java),
    preload=_PACKAGE.preload,
    cluster_describer=_PACKAGE.made("cluster_describer", "KafkaPythonClusterDescriber"),
)
