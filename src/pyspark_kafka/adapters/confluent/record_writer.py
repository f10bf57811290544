"""Records to librdkafka's producer."""

from __future__ import annotations

import logging
import math
import os
import random
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol, final

import numpy as np

from ...domain.errors import RecordDeliveryError, UnsupportedFeatureError
from ...domain.write_result import DeliveryStats
from ...ports.record_writer import RecordWriter
from ..kafka_format.java_sizes import JAVAS_OVERHEAD, first_too_large
from ..kafka_format.producer_columns import ProducerColumns
from ..kafka_format.record_blocks import read_only
from ..partitioning.topic_rows import partitions_of, rows_by_topic
from .connection import Connection
from .delivery_errors import too_large_error
from .librdkafka import LibraryUnusableError, load
from .partitioned_rows import PartitionedRows, grouped, place_by_key
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
    from .partitioned_rows import Longs

_METADATA_MAX_AGE_MS: Final = 300_000
"""librdkafka's default, and Java's."""

_parents: Final[list[object]] = []
"""What a process has of its parent's: confluent-kafka ends what nobody refers to any more."""

log = logging.getLogger(__name__)


class _Client(MetadataClient, Protocol):
    """What records are handed to."""

    def send(self, rows: PartitionedRows) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


@final
class ConfluentRecordWriter(RecordWriter):
    """Writes with one handle of librdkafka's, which is made at first use.

    librdkafka's C API is called where it can be, and else ``Producer.produce``.
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
        self._places_by_key = not (options.producer.ignores_keys or PARTITIONER in config)
        self._topics = TopicPartitions(
            self._connection,
            options.producer.max_block_ms / 1_000,
            _max_age_s(config),
        )
        self._sticky = random.randrange(1 << 16)  # noqa: S311  # no secret
        self._library = library
        self._made: _Client | None = None
        self._process = 0
        self._delivered = DeliveryStats()

    def join_transaction(self, transaction: Transaction) -> None:  # noqa: ARG002  # the port's
        raise UnsupportedFeatureError(
            "The client 'confluent'",
            "write into a transaction that another process ends; take the client 'kafka-python'",
        )

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        by_topic = rows_by_topic(batch, topic)
        columns = ProducerColumns.of(batch, time.time_ns() // 1_000_000)
        # Nothing is sent before all of it is known to be possible.
        parts = [self._part(name, batch, columns, rows) for name, rows in by_topic]
        for part in parts:
            self._client().send(part)
            size = columns.payload_bytes(part.rows)
            self._delivered += DeliveryStats(len(part.rows), size)

    def flush(self) -> DeliveryStats:
        if self._delivered.records:
            self._client().flush()
        delivered, self._delivered = self._delivered, DeliveryStats()
        return delivered

    def close(self) -> None:
        self._leave_parents()
        made, self._made = self._made, None
        self._delivered = DeliveryStats()
        if made is not None:
            made.close()

    def _part(
        self, topic: str, batch: pa.RecordBatch, columns: ProducerColumns, rows: Longs
    ) -> PartitionedRows:
        count = self._topics.count(self._client(), topic)
        partitioner = self._producer.partitioner
        partitions, is_chosen = partitions_of(batch, rows, partitioner, count)
        if (partitions >= count).any():
            # It may have got more since it was asked for.
            count = self._topics.count(self._client(), topic, anew=True)
        part = PartitionedRows(topic, batch, columns, rows, read_only(partitions))
        impossible = np.flatnonzero(is_chosen & ((partitions < 0) | (partitions >= count)))
        if len(impossible):
            raise _no_such_partition(part, int(impossible[0]), count)
        self._check_sizes(part)
        _check_timestamps(part)
        if self._places_by_key:
            self._sticky += 1
            part = place_by_key(part, is_chosen, count, self._sticky % count)
        return grouped(part)

    def _check_sizes(self, part: PartitionedRows) -> None:
        limit, setting = self._limit
        if part.columns.record_sizes().max() + JAVAS_OVERHEAD <= limit:
            return
        place, size = first_too_large(part.columns.arrays, part.rows, limit)
        if place >= 0:
            partition = int(part.partitions[place])
            raise too_large_error(part.topic, partition, part.size(place), size, limit, setting)

    def _client(self) -> _Client:
        self._leave_parents()
        if self._made is None:
            self._made = self._make()
            self._process = os.getpid()
            self._delivered = DeliveryStats()
        return self._made

    def _leave_parents(self) -> None:
        """Part with a handle that was made before a fork: its threads are not here to end."""
        if self._made is not None and self._process != os.getpid():
            _parents.append(self._made)
            self._made = None

    def _make(self) -> _Client:
        try:
            library = self._library()
        except LibraryUnusableError as error:
            _warn_once(str(error))
            return ProduceFallback(self._connection, self._tuned)
        config = self._connection.config(FORCED, self._tuned)
        return SimpleProducer(library, self._connection, config, self._producer.buffer_memory)


def _limit(producer: ProducerSettings, config: Mapping[str, str]) -> tuple[int, str]:
    """Give how large a record may be, and the setting that says so."""
    # Whoever says it in librdkafka's words means it.
    own = _whole(config, MESSAGE_MAX_BYTES)
    return (
        (producer.max_request_size, "max.request.size") if own is None else (own, MESSAGE_MAX_BYTES)
    )


def _max_age_s(config: Mapping[str, str]) -> float:
    own = _whole(config, METADATA_MAX_AGE_MS)
    if own is not None and own < 0:  # it is never asked for again
        return math.inf
    return (_METADATA_MAX_AGE_MS if own is None else own) / 1_000


def _whole(config: Mapping[str, str], name: str) -> int | None:
    """Give a number; what is none is refused when a client is made."""
    try:
        return int(config[name])
    except (KeyError, ValueError):
        return None


def _check_timestamps(part: PartitionedRows) -> None:
    if part.is_plain or (part.columns.arrays[0][part.rows] != 0).all():
        return
    # librdkafka takes 0 for the time of now, and silently.
    raise UnsupportedFeatureError(
        "The client 'confluent'",
        "write the timestamp 1970-01-01 00:00:00 UTC; take the client 'kafka-python'",
    )


def _no_such_partition(part: PartitionedRows, place: int, count: int) -> RecordDeliveryError:
    return RecordDeliveryError(
        part.topic,
        int(part.partitions[place]),
        part.size(place),
        f"there is no such partition: the topic has {count}, which are numbered from 0",
    )


@lru_cache(maxsize=1)
def _warn_once(missing: str) -> None:
    log.warning(
        "The client 'confluent' writes at a fraction of its rate, through Producer.produce: "
        "what is missing to call librdkafka itself is %s",
        missing,
    )
