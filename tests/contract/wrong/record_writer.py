"""Writers that break a promise of ``RecordWriter``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from dependency_injector import providers

from pyspark_kafka.ports.record_writer import RecordWriter
from pyspark_kafka.testing import MemoryWorld, RecordWriterContract

from .adapter import WrongAdapter, suite_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_kafka.bootstrap.container import SinkContainer
    from pyspark_kafka.domain.options import SinkOptions
    from pyspark_kafka.domain.transaction import Transaction
    from pyspark_kafka.domain.write_result import DeliveryStats


class Passing(RecordWriter):
    """Passes every call to another writer."""

    def __init__(self, writer: RecordWriter) -> None:
        self.writer = writer

    def join_transaction(self, transaction: Transaction) -> None:
        self.writer.join_transaction(transaction)

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        self.writer.write(batch, topic)

    def flush(self) -> DeliveryStats:
        return self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class FirstTopic(Passing):
    """Takes the first row's topic for a whole batch."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        self.writer.write(_with_first(batch, "topic"), topic)


class FirstPartition(Passing):
    """Takes the first row's partition for a whole batch."""

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        self.writer.write(_with_first(batch, "partition"), topic)


def _with_first(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    if name not in batch.schema.names or not batch.num_rows:
        return batch
    first = batch.column(name)[0]
    return _with_column(batch, name, pa.repeat(first, batch.num_rows))


def _with_column(batch: pa.RecordBatch, name: str, values: pa.Array[Any]) -> pa.RecordBatch:
    columns = {**dict(zip(batch.schema.names, batch.columns, strict=True)), name: values}
    return pa.RecordBatch.from_pydict(columns)


class _WriterWorld(MemoryWorld):
    """The cluster in memory, with its writer in an adapter."""

    def __init__(self, adapter: type[Passing]) -> None:
        super().__init__()
        self._adapter = adapter

    def make_sink_container(self, options: SinkOptions) -> SinkContainer:
        container = super().make_sink_container(options)
        writer = self._adapter(container.record_writer())
        container.record_writer.override(providers.Object(writer))
        return container


def _suite(adapter: type[Passing]) -> type:
    return suite_with(RecordWriterContract, world=lambda: _WriterWorld(adapter))


def _wrong(adapter: type[Passing], caught_by: Callable[..., None]) -> WrongAdapter:
    return WrongAdapter(adapter, _suite(adapter), caught_by)


RIGHT: Final = _suite(Passing)
WRONG: Final = (
    _wrong(FirstTopic, RecordWriterContract.test_each_row_may_name_its_topic),
    _wrong(FirstPartition, RecordWriterContract.test_each_row_may_name_its_partition),
)
