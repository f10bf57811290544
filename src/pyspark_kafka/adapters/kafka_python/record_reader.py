"""Records by fetch requests of our own, over connections that kafka-python makes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, final

from kafka import KafkaConsumer

from ...domain.reading.record_limits import OversizedRecords
from ...ports.reading import RecordReader
from ..fetching import Watermarks, read_range
from ..kafka_format.record_decoder import DecoderMemory, RecordDecoder
from .fetch_client import FetchClient, PartitionFetcher
from .offset_fetcher import KafkaPythonOffsetFetcher
from .settings import client_settings
from .transports import MAX_FRAME_BYTES
from .wire import FetchSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import pyarrow as pa

    from ...domain.options.source import SourceOptions
    from ...domain.reading.data_loss import DataLoss
    from ...domain.reading.ranges import OffsetRange
    from ...domain.reading.records import Projection

PARTITION_BYTES: Final = 2 * 1024 * 1024
"""The default size of a fetch: it stays in the processor's cache until it is decoded, and is large
enough that the number of requests does not matter."""

MAX_WAIT_MS: Final = 1_000
"""How long a broker may wait for records before it sends an empty response."""


@final
class KafkaPythonRecordReader(RecordReader):
    """Reads one partition at a time; connects at first use, and stays connected."""

    def __init__(self, options: SourceOptions) -> None:
        """Translate the options; nothing is connected yet.

        :raises OptionsError: if a setting is not known to kafka-python.
        """
        settings, errors = client_settings(dict(options.kafka))
        config = {
            **KafkaConsumer.DEFAULT_CONFIG,
            "max_partition_fetch_bytes": PARTITION_BYTES,
            **settings,
        }
        self._options = options
        self._client = FetchClient(
            config,
            errors,
            FetchSettings(
                client_id=config["client_id"],
                rack=config["client_rack"],
                isolation_level=int(options.reads_committed_only),
                min_bytes=config["fetch_min_bytes"],
                max_bytes=config["fetch_max_bytes"],
                partition_bytes=config["max_partition_fetch_bytes"],
                max_wait_ms=min(config["fetch_max_wait_ms"], MAX_WAIT_MS),
                max_batch_bytes=max(MAX_FRAME_BYTES, options.max_record_bytes),
            ),
        )
        self._watermarks = Watermarks(partial(KafkaPythonOffsetFetcher, options), options)
        self._memory = DecoderMemory()
        self._check_crcs: bool = config["check_crcs"]
        self._oversized = OversizedRecords(options.record_limits)

    def expect(self, ranges: Collection[OffsetRange]) -> None:
        self._client.expect(ranges)

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        partition = PartitionFetcher(
            self._client,
            offset_range,
            RecordDecoder(
                offset_range.partition,
                projection,
                self._memory,
                check_crcs=self._check_crcs,
                oversized=self._oversized,
            ),
            self._watermarks,
            self._options.poll_timeout_ms,
        )
        return read_range(partition, offset_range, self._options.poll_timeout_ms)

    def take_skipped(self) -> Iterator[DataLoss]:
        return self._oversized.take_skipped()

    def close(self) -> None:
        self._client.close()
