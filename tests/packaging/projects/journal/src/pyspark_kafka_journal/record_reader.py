"""Records of a journal as Arrow."""

from collections.abc import Iterator
from itertools import islice
from typing import Final, final

import pyarrow as pa

from pyspark_kafka.adapters.kafka_format.record_columns import record_batches
from pyspark_kafka.domain.errors import UnknownTopicError
from pyspark_kafka.domain.options.source import SourceOptions
from pyspark_kafka.domain.reading.data_loss import DataLoss
from pyspark_kafka.domain.reading.errors import OffsetOutOfRangeError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.record_limits import OversizedRecords
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.ports.reading import RecordReader

from .journal import Journal

RECORDS_A_BATCH: Final = 1_000


@final
class JournalRecordReader(RecordReader):
    """Reads lines. They never go away, so that a range is there from its start or not at all."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._oversized = OversizedRecords(options.record_limits)
        self._journal = Journal(options.bootstrap_servers)

    def read(self, offset_range: OffsetRange, projection: Projection) -> Iterator[pa.RecordBatch]:
        partition, until = offset_range.partition, offset_range.until_offset
        latest = self._journal.end(partition)
        if latest is None:
            option, directory = self._options.subscription.option, self._options.bootstrap_servers
            raise UnknownTopicError([partition.topic], option, directory)
        records = self._journal.records(partition, offset_range.from_offset, min(until, latest))
        while batch := list(islice(records, RECORDS_A_BATCH)):
            yield from record_batches(batch, partition, projection, self._oversized)
        if offset_range.size and until > latest:
            missing = max(offset_range.from_offset, latest)
            raise OffsetOutOfRangeError(partition, missing, earliest=0, latest=latest)

    def take_skipped(self) -> Iterator[DataLoss]:
        return self._oversized.take_skipped()

    def close(self) -> None:
        """Do nothing: a file is closed with the iterator that reads it."""
