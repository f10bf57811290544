"""The data source: what ``spark.read`` and ``spark.readStream`` make readers from."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from ...domain.options import Query, includes_headers, parse_source_options
from ...domain.projection import ALL_COLUMNS, WITHOUT_HEADERS
from .batch_reader import KafkaBatchReader
from .plain_errors import plain_errors
from .schema import projection_of, spark_schema
from .stream_reader import KafkaStreamReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from .wiring import Wiring

FORMAT = "pyspark_kafka"


class KafkaDataSource(DataSource):
    """Kafka as a Python data source; a subclass says how its use cases are made."""

    wiring: ClassVar[Wiring]

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        """Give the JVM connector's schema; ``headers`` is part of it with ``includeHeaders``."""
        with plain_errors():
            with_headers = includes_headers(self.options)
        return spark_schema(ALL_COLUMNS if with_headers else WITHOUT_HEADERS)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make a batch reader; ``schema`` is ours, or a part of it that the user asked for."""
        with plain_errors():
            options = parse_source_options(self.options, Query.BATCH)
            return KafkaBatchReader(self.wiring, options, projection_of(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Make a micro-batch reader; ``schema`` as in ``reader``."""
        with plain_errors():
            options = parse_source_options(self.options, Query.STREAM)
            return KafkaStreamReader(self.wiring, options, projection_of(schema))
