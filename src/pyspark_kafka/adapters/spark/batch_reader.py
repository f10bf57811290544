"""Spark's batch reader over the use cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from .plain_errors import plain_errors
from .task import read_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from ...domain.options import SourceOptions
    from ...domain.projection import Projection
    from .wiring import Wiring


@final
class KafkaBatchReader(DataSourceReader):
    """Plans on the driver and reads in tasks; crosses to executors with frozen values only."""

    def __init__(self, wiring: Wiring, options: SourceOptions, projection: Projection) -> None:
        self._wiring = wiring
        self._options = options
        self._projection = projection

    def partitions(self) -> Sequence[InputPartition]:
        with plain_errors(), self._wiring.batch(self._options) as batch:
            return [InputPartition(planned) for planned in batch.plan_input_partitions()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self._wiring, self._options, partition.value, self._projection)
