"""Writing with this library's own record batches, sent over kafka-python's connections."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, final

from kafka import errors as kafka_errors

from ...domain.writing.errors import ProducerFencedError
from ...domain.writing.transaction import DeliveryStats
from ...ports.writing import RecordWriter
from ..partitioning.batch_gatherer import FEW_BYTES, BatchGatherer
from ..partitioning.topic_rows import require_topic
from .produce_client import ProducerFactory

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ...domain.options.sink import SinkOptions
    from ...domain.writing.transaction import Transaction


@final
class KafkaPythonRecordWriter(RecordWriter):
    """Encodes Arrow batches as Kafka's and sends them; connects once, at first use."""

    def __init__(self, options: SinkOptions) -> None:
        """Connect to nothing yet; raise as ``client_settings`` for the options."""
        self._producer = options.producer
        self._factory = ProducerFactory(options)
        self._errors = self._factory.errors
        self._partitioner = self._factory.partitioner
        self._client = self._factory.new_client()
        self._transaction: Transaction | None = None
        self._gatherer = BatchGatherer(FEW_BYTES)

    def join_transaction(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._client.join_transaction(transaction)

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        require_topic(batch, topic)
        for gathered, option in self._gatherer.add(batch, topic):
            self._write(gathered, option)

    def flush(self) -> DeliveryStats:
        self._write_gathered()
        with self._mapped_errors():
            delivered = self._client.flush()
            self._client.join_transaction(None)
        self._partitioner.change_sticky_partitions()
        self._transaction = None
        return delivered

    def close(self) -> None:
        self._client.close()
        self._factory.close()

    def _write_gathered(self) -> None:
        for batch, topic in self._gatherer.take():
            self._write(batch, topic)

    def _write(self, batch: pa.RecordBatch, topic: str | None) -> None:
        unsent_rows = 0
        rows_per_request = self._producer.max_request_size * batch.num_rows // (batch.nbytes or 1)
        with self._mapped_errors():
            groups = self._partitioner.partition(batch, topic)
            for partition, rows in groups:
                self._client.append(partition, rows)
                unsent_rows += len(rows)
                if unsent_rows > rows_per_request:
                    # Brokers process the requests while the next rows are encoded.
                    self._client.send()
                    unsent_rows = 0
            self._client.send()
        self._gatherer.adapt(len(groups))

    @contextmanager
    def _mapped_errors(self) -> Iterator[None]:
        try:
            with self._errors.mapped_errors("a request to produce"):
                yield
        except Exception as error:
            fenced = (kafka_errors.ProducerFencedError, kafka_errors.InvalidProducerEpochError)
            if self._transaction is not None and isinstance(error.__cause__, fenced):
                raise ProducerFencedError(self._transaction.transactional_id) from error
            raise
