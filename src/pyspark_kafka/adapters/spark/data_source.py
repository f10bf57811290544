"""The data source: what ``spark.read`` and ``spark.readStream`` make readers from."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from ...domain.options import (
    Query,
    SourceOptions,
    ignored_options,
    parse_projection,
    parse_source_options,
)
from .batch_reader import FilteringBatchReader, KafkaBatchReader
from .plain_errors import plain_errors
from .schema import projection_of, spark_schema
from .stream_reader import KafkaStreamReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from .wiring import Wiring

log = logging.getLogger("pyspark_kafka")

FORMAT = "pyspark_kafka"


class KafkaDataSource(DataSource):
    """Kafka as a Python data source; a subclass says how its use cases are made."""

    wiring: ClassVar[Wiring]

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        """Give the JVM connector's schema, less the columns that options leave out."""
        with plain_errors():
            return spark_schema(parse_projection(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make a batch reader; ``schema`` is ours, or a part of it that the user asked for."""
        with plain_errors():
            options = self._parse(Query.BATCH)
            kind = FilteringBatchReader if options.push_filters else KafkaBatchReader
            return kind(self.wiring, options, projection_of(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Make a micro-batch reader; ``schema`` as in ``reader``."""
        with plain_errors():
            options = self._parse(Query.STREAM)
            return KafkaStreamReader(self.wiring, options, projection_of(schema))

    def _parse(self, query: Query) -> SourceOptions:
        for name in ignored_options(self.options, query):
            log.warning("%s option ignored in %s queries", name, query.value)
        return parse_source_options(self.options, query)
