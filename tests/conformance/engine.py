"""A micro-batch engine in a few lines: what Spark does with a stream, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.bootstrap.container import Container, container_for
from pyspark_kafka.domain.options import QueryKind, parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.projection import Projection

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

VALUE = Projection(("value",))


class Engine:
    """Runs the batches of a stream of numbers, and keeps its offsets as JSON like a checkpoint."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._checkpoint: str | None = None
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._container.shutdown_resources()

    @property
    def container(self) -> Container:
        """What the stream is made of."""
        return self._container

    @property
    def checkpoint(self) -> str | None:
        """The offsets at which the next batch begins."""
        return self._checkpoint

    def restart(self, checkpoint: str | None = None) -> None:
        """Let another process go on from the checkpoint, or from a given one."""
        self._container.shutdown_resources()
        self._checkpoint = checkpoint or self._checkpoint
        self._open()

    def run_batch(self) -> list[int]:
        """Run a batch if there is anything to read, and give its numbers in order."""
        if self._checkpoint is None:
            self._checkpoint = self._stream.initial_offset().to_json()
        start = PartitionOffsets.from_json(self._checkpoint)
        end = self._stream.latest_offset(start, self._stream.default_read_limit)
        if end == start:
            return []
        numbers = [
            int(row["value"])
            for planned in self._stream.plan_input_partitions(start, end)
            for batch in self._container.range_read().read(planned, VALUE)
            for row in batch.to_pylist()
        ]
        self._checkpoint = end.to_json()
        return sorted(numbers)

    def _open(self) -> None:
        self._container = container_for(parse_source_options(self._options, QueryKind.STREAM))
        self._stream = self._container.micro_batch_stream()
