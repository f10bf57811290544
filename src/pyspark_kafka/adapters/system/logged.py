"""The events of sources, and the lag and progress of queries, as log lines."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import final

from ...domain.continuous.progress import EpochProgress
from ...domain.errors import PysparkKafkaError
from ...domain.lag.lag import Lag, QueryLag
from ...domain.partition_offsets import PartitionOffsets
from ...domain.reading.data_loss import DataLoss
from ...domain.reading.errors import OffsetOutOfRangeError
from ...domain.topic_partition import TopicPartition
from ...domain.values.errors import BadRecordStats
from ...domain.writing.transaction import DeliveryStats
from ...ports.lag import LagExporter, ProgressListener
from ...ports.reading import SourceEvents

log = logging.getLogger("pyspark_kafka")
lag_log = logging.getLogger("pyspark_kafka.lag")
progress_log = logging.getLogger("pyspark_kafka.continuous")


@final
class LoggingSourceEvents(SourceEvents):
    """Logs every event to ``pyspark_kafka``, with the JVM connector's messages."""

    def initial_offsets(self, offsets: PartitionOffsets) -> None:
        log.info("Initial offsets: %s", offsets.to_json())

    def partitions_added(self, offsets: PartitionOffsets) -> None:
        log.info("Partitions added: %s", offsets.to_json())

    def partitions_left_out(self, partitions: Collection[TopicPartition]) -> None:
        log.warning(
            "Partitions added since the query was planned are not read, since its options give no "
            "bounds for them: %s. To plan it again, load() the data frame again",
            ", ".join(map(str, sorted(partitions))),
        )

    def data_lost(self, loss: DataLoss) -> None:
        log.warning("%s", loss.as_warning())

    def offset_out_of_range(self, error: OffsetOutOfRangeError) -> None:
        log.warning("%s", error)

    def offsets_retried(self, attempt: int, attempts: int, reason: str) -> None:
        log.info("Attempt %d of %d to fetch offsets: %s", attempt, attempts, reason)

    @property
    def takes_lag(self) -> bool:
        return log.isEnabledFor(logging.DEBUG)

    def lag_measured(self, lag: Lag) -> None:
        log.debug("Offsets behind latest: total %s, max %s", lag.total, lag.max)

    def group_commit_failed(self, group_id: str, error: PysparkKafkaError) -> None:
        log.warning("Offsets were not committed to the group '%s': %s", group_id, error)

    def records_failed(self, found: BadRecordStats, partition: TopicPartition, offset: int) -> None:
        log.warning(
            "%d records could not be decoded (%s), the first one at offset %d of %s; "
            "%d dead letters were written",
            found.total,
            found,
            offset,
            partition,
            found.dead_letters,
        )

    def tasks_are_small(self, tasks: int, offsets: int) -> None:
        log.warning(
            "A batch has %d tasks for %d offsets. A task takes some milliseconds, whatever it "
            "reads: set 'maxPartitions', to the number of cores for example, so that tasks read "
            "several partitions",
            tasks,
            offsets,
        )

    def records_delivered(self, delivered: DeliveryStats) -> None:
        log.info(
            "Delivered %d records, %d bytes of keys, values and headers",
            delivered.records,
            delivered.bytes,
        )


@final
class LoggingLagExporter(LagExporter):
    """Logs a line per batch to the logger ``pyspark_kafka.lag``, at the given level.

    Each partition has its own line at level DEBUG.
    """

    def __init__(self, level: int = logging.INFO) -> None:
        self._level = level

    def export(self, lag: QueryLag) -> None:
        numbers = lag.lag
        lag_log.log(
            self._level,
            "Query %s is %d %s behind after batch %d (min %d, max %d, avg %.1f by partition)%s",
            lag.name or lag.query_id,
            numbers.total,
            "records" if lag.is_exact else "offsets",
            lag.batch_id,
            numbers.min,
            numbers.max,
            numbers.avg,
            "" if lag.bad_records is None else _failures(lag.bad_records),
        )
        for partition, offsets in numbers.by_partition.items():
            lag_log.debug("%s: %d behind", partition, offsets)

    def query_ended(self, query_id: str, run_id: str) -> None:
        """Do nothing: log lines stay."""


@final
class LoggingProgressListener(ProgressListener):
    """Logs a line per progress report to the logger ``pyspark_kafka.continuous``, at level INFO."""

    def progressed(self, progress: EpochProgress) -> None:
        lag, latency = progress.lag, progress.work.latency
        progress_log.info(
            "Query %s, epoch %d: %.1f rows/s in, %.1f rows/s out, lag %s, latency p50 %s ms, "
            "p99 %s ms, %d tasks, %d restarts%s",
            progress.query.name or progress.query.query_id,
            progress.epoch,
            progress.input_rows_per_second,
            progress.output_rows_per_second,
            "unknown" if lag is None else lag.total,
            _or_dash(latency.percentile(50)),
            _or_dash(latency.percentile(99)),
            progress.tasks,
            progress.restarts,
            _failures(progress.work.bad_records),
        )

    def query_ended(self, query_id: str, run_id: str) -> None:
        """Do nothing: log lines stay."""


def _failures(found: BadRecordStats) -> str:
    return f", bad records: {found}; {found.dead_letters} dead letters" if found.total else ""


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
