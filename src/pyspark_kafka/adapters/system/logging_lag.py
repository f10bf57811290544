"""The lag of queries as log lines."""

from __future__ import annotations

import logging
from typing import final

from ...domain.lag import QueryLag
from ...ports.lag_exporter import LagExporter

log = logging.getLogger("pyspark_kafka.lag")


@final
class LoggingLagExporter(LagExporter):
    """Logs a line per batch to the logger ``pyspark_kafka.lag``, at the given level.

    Each partition has its own line at level DEBUG.
    """

    def __init__(self, level: int = logging.INFO) -> None:
        self._level = level

    def export(self, lag: QueryLag) -> None:
        numbers = lag.lag
        log.log(
            self._level,
            "Query %s is %d %s behind after batch %d (min %d, max %d, avg %.1f by partition)",
            lag.name or lag.query_id,
            numbers.total,
            "records" if lag.is_exact else "offsets",
            lag.batch_id,
            numbers.min,
            numbers.max,
            numbers.avg,
        )
        for partition, offsets in numbers.by_partition.items():
            log.debug("%s: %d behind", partition, offsets)

    def query_ended(self, query_id: str, run_id: str) -> None:
        """Do nothing: log lines stay."""
