"""Clients, this library's own and others', by the names that the option ``client`` gives.

What is made here is a resource of dependency-injector: made when it is first used, closed when its
container is.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ..domain.errors import MissingDependencyError, OptionsError
from .plugins import installed_client, installed_clients

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..domain.options import SinkOptions, SourceOptions
    from ..ports.client import Client
    from ..ports.offset_fetcher import OffsetFetcher
    from ..ports.record_reader import RecordReader
    from ..ports.record_writer import RecordWriter
    from ..ports.transactions import Transactions


class _Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=_Closable)
O = TypeVar("O")  # noqa: E741  # options

CLIENTS: Final = ("confluent", "kafka-python", "memory")
"""What the option ``client`` may name; the memory client serves within one process.

Clients of other distributions come beside them: ``plugins``.
"""


def client_named(name: str) -> Client:
    """Give a client that another distribution brings.

    :raises OptionsError: if there is none of that name.
    :raises PluginError: if it cannot be loaded.
    """
    client = installed_client(name)
    if client is None:
        known = ", ".join(f"'{one}'" for one in (*CLIENTS, *installed_clients()))
        raise OptionsError([f"Client '{name}' is not known. Known clients are {known}."])
    return client


def made_by(make: Callable[[O], C], options: O) -> Iterator[C]:
    """Make an adapter, and close it afterwards."""
    adapter = make(options)
    yield adapter
    adapter.close()


def confluent_offset_fetcher(options: SourceOptions) -> Iterator[OffsetFetcher]:
    """Make librdkafka's offset fetcher."""
    with _needs("confluent_kafka", "The client 'confluent'", extra="confluent"):
        from ..adapters.confluent.offset_fetcher import ConfluentOffsetFetcher
    yield from made_by(ConfluentOffsetFetcher, options)


def confluent_record_reader(options: SourceOptions) -> Iterator[RecordReader]:
    """Make librdkafka's reader."""
    with _needs("confluent_kafka", "The client 'confluent'", extra="confluent"):
        from ..adapters.confluent.record_reader import ConfluentRecordReader
    yield from made_by(ConfluentRecordReader, options)


def confluent_record_writer(options: SinkOptions) -> Iterator[RecordWriter]:
    """Make librdkafka's writer."""
    with _needs("confluent_kafka", "The client 'confluent'", extra="confluent"):
        from ..adapters.confluent.record_writer import ConfluentRecordWriter
    yield from made_by(ConfluentRecordWriter, options)


def kafka_python_offset_fetcher(options: SourceOptions) -> Iterator[OffsetFetcher]:
    """Make kafka-python's offset fetcher."""
    from ..adapters.kafka_python.offset_fetcher import KafkaPythonOffsetFetcher

    yield from made_by(KafkaPythonOffsetFetcher, options)


def kafka_python_record_reader(options: SourceOptions) -> Iterator[RecordReader]:
    """Make kafka-python's reader."""
    from ..adapters.kafka_python.record_reader import KafkaPythonRecordReader

    yield from made_by(KafkaPythonRecordReader, options)


def kafka_python_record_writer(options: SinkOptions) -> Iterator[RecordWriter]:
    """Make kafka-python's writer."""
    from ..adapters.kafka_python.record_writer import KafkaPythonRecordWriter

    yield from made_by(KafkaPythonRecordWriter, options)


def kafka_python_transactions(options: SinkOptions) -> Iterator[Transactions]:
    """Make what begins and ends transactions by kafka-python."""
    from ..adapters.kafka_python.transactions import KafkaPythonTransactions

    yield from made_by(KafkaPythonTransactions, options)


@contextmanager
def _needs(module: str, what: str, *, extra: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise MissingDependencyError(what, extra) from error
