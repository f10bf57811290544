"""Records for librdkafka's producer."""

from __future__ import annotations

import logging
import math
import random
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol, final

import numpy as np

from ...domain.errors import UnsupportedFeatureError
from ...domain.write_result import DeliveryStats
from ...ports.record_writer import RecordWriter
from ..kafka_format.producer_columns import ProducerColumns
from ..kafka_format.size_limits import MAX_REQUEST_SIZE, require_sizes
from ..kernels.arrays import read_only
from ..partitioning.batch_gatherer import BatchGatherer
from ..partitioning.topic_rows import (
    ExplicitPartitions,
    partitions_by_key,
    require_partitions,
    require_topic,
    rows_by_topic,
)
from ..process_local import ProcessLocal
from .connection import Connection
from .librdkafka import LibraryUnusableError, load
from .partitioned_rows import PartitionedRows
from .produce_fallback import ProduceFallback
from .producer_config import (
    FORCED,
    MESSAGE_MAX_BYTES,
    METADATA_MAX_AGE_MS,
    PARTITIONER,
    producer_client_config,
    producer_config,
)
from .simple_producer import SimpleProducer
from .topic_partitions import MetadataClient, TopicPartitions

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from ...domain.kafka_settings import ProducerSettings
    from ...domain.options import SinkOptions
    from ...domain.transaction import Transaction
    from ..kernels.arrays import Int64Array

_METADATA_MAX_AGE_MS: Final = 300_000
"""The default of librdkafka and of Java's client."""

log = logging.getLogger(__name__)


class _Client(MetadataClient, Protocol):
    """The producer that takes the rows."""

    def send(self, rows: PartitionedRows) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


@final
@dataclass(slots=True)
class _Session:
    """A client, and what was written with it."""

    client: _Client
    gatherer: BatchGatherer
    written: DeliveryStats


@final
class ConfluentRecordWriter(RecordWriter):
    """Writes with one handle of librdkafka's, which is created at first use.

    It calls librdkafka's C API where that is possible, and ``Producer.produce`` elsewhere.
    """

    def __init__(self, options: SinkOptions, library: Callable[[], ctypes.CDLL] = load) -> None:
        """Check the options; nothing is connected yet.

        :raises OptionsError: if librdkafka does not know a setting.
        """
        self._connection = Connection(options, producer_client_config)
        self._producer = options.producer
        self._tuned = producer_config(options.producer)
        config = self._connection.config({}, {})
        self._limit = _limit(options.producer, config)
        self._hashes_keys = not (options.producer.ignores_keys or PARTITIONER in config)
        self._topics = TopicPartitions(
            self._connection, options.producer.max_block_ms / 1_000, _max_age_s(config)
        )
        self._sticky = random.randrange(1 << 16)  # noqa: S311  # no secret
        self._library = library
        self._local: ProcessLocal[_Session] = ProcessLocal()

    def join_transaction(self, transaction: Transaction) -> None:  # noqa: ARG002  # the port's
        raise UnsupportedFeatureError(
            "The client 'confluent'",
            "write into a transaction that another process ends; use the client 'kafka-python'",
        )

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        require_topic(batch, topic)
        session = self._session()
        for gathered, option in session.gatherer.add(batch, topic):
            self._write(session, gathered, option)

    def flush(self) -> DeliveryStats:
        session = self._local.get()
        if session is None:
            return DeliveryStats()
        for batch, topic in session.gatherer.take():
            self._write(session, batch, topic)
        if session.written.records:
            session.client.flush()
        written, session.written = session.written, DeliveryStats()
        return written

    def close(self) -> None:
        session = self._local.pop()
        if session is not None:
            session.client.close()

    def _session(self) -> _Session:
        return self._local.get() or self._local.set(
            _Session(self._new_client(), BatchGatherer(), DeliveryStats())
        )

    def _write(self, session: _Session, batch: pa.RecordBatch, topic: str | None) -> None:
        columns = ProducerColumns.of(batch, time.time_ns() // 1_000_000)
        explicit = ExplicitPartitions(batch, self._producer.partitioner)
        # All rows are checked before the first is sent.
        parts = [
            self._partitioned(session.client, name, batch, columns, rows, explicit)
            for name, rows in rows_by_topic(batch, topic)
        ]
        for part in parts:
            session.client.send(part)
        size = columns.payload_bytes(np.arange(batch.num_rows))
        session.written += DeliveryStats(batch.num_rows, size)
        session.gatherer.adapt(len(parts))

    def _partitioned(
        self,
        client: _Client,
        topic: str,
        batch: pa.RecordBatch,
        columns: ProducerColumns,
        rows: Int64Array,
        explicit: ExplicitPartitions,
    ) -> PartitionedRows:
        count = self._topics.count(client, topic)
        partitions, is_chosen = explicit.of(rows, count)
        if (partitions >= count).any():
            # The topic may have got more partitions.
            count = self._topics.count(client, topic, refresh=True)
        chosen = partitions, is_chosen
        require_partitions(topic, columns, rows, chosen, count)
        limit, setting = self._limit
        require_sizes(topic, columns, rows, partitions, max_size=limit, setting=setting)
        if self._hashes_keys:
            # librdkafka would do this, in twice the time. It queues records that it has to
            # partition apart from those with a partition, and so changes their order.
            self._sticky += 1
            sticky = self._sticky % count
            partitions = partitions_by_key(columns, rows, chosen, count, sticky)
        part = PartitionedRows(topic, batch, columns, rows, read_only(partitions))
        _check_timestamps(part)
        return part.grouped()

    def _new_client(self) -> _Client:
        try:
            library = self._library()
        except LibraryUnusableError as error:
            _warn_once(str(error))
            return ProduceFallback(self._connection, self._tuned)
        config = self._connection.config(FORCED, self._tuned)
        return SimpleProducer(library, self._connection, config, self._producer.buffer_memory)


def _limit(producer: ProducerSettings, config: Mapping[str, str]) -> tuple[int, str]:
    """Return the maximum size of a record, and the setting that it comes from."""
    own = _integer(config, MESSAGE_MAX_BYTES)
    if own is not None:
        return own, MESSAGE_MAX_BYTES
    return producer.max_request_size, MAX_REQUEST_SIZE


def _max_age_s(config: Mapping[str, str]) -> float:
    own = _integer(config, METADATA_MAX_AGE_MS)
    if own is not None and own < 0:  # metadata are never refreshed
        return math.inf
    return (_METADATA_MAX_AGE_MS if own is None else own) / 1_000


def _integer(config: Mapping[str, str], name: str) -> int | None:
    """Return a setting's number; librdkafka refuses invalid ones when a client is created."""
    try:
        return int(config[name])
    except (KeyError, ValueError):
        return None


def _check_timestamps(part: PartitionedRows) -> None:
    if part.is_plain or (part.columns.arrays[0][part.rows] != 0).all():
        return
    # librdkafka silently replaces 0 by the current time.
    raise UnsupportedFeatureError(
        "The client 'confluent'",
        "write the timestamp 1970-01-01 00:00:00 UTC; use the client 'kafka-python'",
    )


@lru_cache(maxsize=1)
def _warn_once(missing: str) -> None:
    log.warning(
        "The client 'confluent' writes at a fraction of its rate, by Producer.produce. To call "
        "librdkafka directly it needs %s",
        missing,
    )
