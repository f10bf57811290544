"""Writing by ``Producer.produce``, where librdkafka's C API cannot be called.

It creates Python objects per record.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from confluent_kafka import KafkaException, Producer

from .client_closing import close_in_time
from .delivery_errors import Undelivered, delivery_error, produce_error, to_report

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .connection import Connection
    from .partitioned_rows import PartitionedRows

_ROWS: Final = 1_000
"""The rows that become Python objects at once."""

_FLUSH_S: Final = 0.1
_FULL_S: Final = 0.01
_METADATA_S: Final = 1.0


@final
class _Reports:
    """The first failure of the queued records.

    Each record refers to it until it is delivered. It does not refer to the producer, which would
    never be collected otherwise.
    """

    def __init__(self) -> None:
        self.failed: Undelivered | None = None

    def take(self, rows: PartitionedRows, place: int, error: Any, message: Any) -> None:
        if error is not None:
            size = rows.size(place)
            code, reason = error.code(), error.str()
            record = Undelivered(rows.topic(place), message.partition(), size, code, reason)
            self.failed = to_report(self.failed, record)


@final
class ProduceFallback:
    """A ``Producer`` that is called for each record."""

    def __init__(self, connection: Connection, tuned: Mapping[str, str]) -> None:
        """Create the producer.

        :raises OptionsError: if librdkafka does not know or accept a setting.
        """
        self._connection = connection
        self._producer: Any = connection.make(Producer, {}, tuned)
        self._reports = _Reports()

    def partitions(self, topic: str, timeout_s: float) -> int:
        """Return the number of partitions of a topic, from a broker.

        :raises KafkaException: if there is no response, or it is an error.
        """
        # It waits without a look at the events, and is asked again.
        listed = self._producer.list_topics(topic, timeout=min(timeout_s, _METADATA_S))
        metadata = listed.topics[topic]
        if metadata.error is not None:
            raise KafkaException(metadata.error)
        return len(metadata.partitions)

    def wait(self, seconds: float) -> None:
        """Handle librdkafka's events for so long at most.

        :raises AuthenticationError: if a broker refuses the login: it was changed.
        :raises TlsError: if a TLS handshake fails.
        """
        self._producer.poll(seconds)
        self._connection.raise_refusal()

    def send(self, rows: PartitionedRows) -> None:
        """Queue records, and block while the queue is full.

        :raises PysparkKafkaError: if one of these, or an earlier one, fails.
        """
        self._check()
        for place, record in enumerate(_records(rows)):
            while not self._queue(rows, place, record):
                self._check(_FULL_S)

    def flush(self) -> None:
        """Wait until every record is acknowledged.

        :raises PysparkKafkaError: as soon as one fails.
        """
        while self._producer.flush(_FLUSH_S):
            self._check()
        self._check()

    def close(self) -> None:
        """Drop what was not flushed; librdkafka's threads end with the last reference."""
        if self._producer is not None:
            producers, self._producer = [self._producer], None
            close_in_time(partial(_drop_last, producers))

    def _queue(self, rows: PartitionedRows, place: int, record: Mapping[str, Any]) -> bool:
        """Queue a record; return whether there was room."""
        try:
            report = partial(self._reports.take, rows, place)
            self._producer.produce(rows.topic(place), on_delivery=report, **record)
        except BufferError:
            return False
        except KafkaException as error:
            code, reason = error.args[0].code(), error.args[0].str()
            partition = int(rows.partitions[place])
            refused = Undelivered(rows.topic(place), partition, rows.size(place), code, reason)
            raise produce_error(self._connection, refused) from error
        return True

    def _check(self, wait_s: float = 0) -> None:
        self.wait(wait_s)
        if self._reports.failed is not None:
            raise delivery_error(self._connection, self._reports.failed)


def _drop_last(producers: list[Any]) -> None:
    """Drop what was not flushed, and the last reference to a producer."""
    producers[0].purge()
    producers.clear()


def _records(rows: PartitionedRows) -> Iterator[dict[str, Any]]:
    """Yield each record as ``Producer.produce`` takes it."""
    batch = rows.batch
    names = [name for name in ("key", "value", "headers") if name in batch.schema.names]
    timestamps = rows.columns.arrays[0]
    for first in range(0, len(rows.rows), _ROWS):
        some = rows.rows[first : first + _ROWS]
        records = batch.select(names).take(some).to_pylist()
        partitions = rows.partitions[first : first + _ROWS].tolist()
        for record, partition, timestamp in zip(
            records, partitions, timestamps[some].tolist(), strict=True
        ):
            pairs = record.pop("headers", None) or ()
            record["headers"] = [(pair["key"], pair["value"]) for pair in pairs]
            yield record | {"partition": partition, "timestamp": timestamp}
