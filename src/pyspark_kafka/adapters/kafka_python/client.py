"""The client ``kafka-python``: its adapters, imported when one is first made."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ...ports.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...domain.options.sink import SinkOptions
    from ...domain.options.source import SourceOptions


def _made(module: str, adapter: str) -> Callable[..., Any]:
    """Return what makes an adapter of a module, which is imported then."""

    def make(*options: object) -> Any:
        return getattr(import_module(f".{module}", __package__), adapter)(*options)

    return make


def _check(options: SourceOptions | SinkOptions) -> None:
    from .settings import check_settings

    check_settings(options.java)


def _preload() -> None:
    from . import record_reader, record_writer, stream_client  # noqa: F401


CLIENT: Final = Client(
    _made("offset_fetcher", "KafkaPythonOffsetFetcher"),
    _made("record_reader", "KafkaPythonRecordReader"),
    _made("record_writer", "KafkaPythonRecordWriter"),
    _made("transactions", "KafkaPythonTransactions"),
    _made("stream_client", "KafkaPythonStreamClient"),
    check_source=_check,
    check_sink=_check,
    preload=_preload,
    cluster_describer=_made("cluster_describer", "KafkaPythonClusterDescriber"),
)
