"""How Spark's classes come by the use cases, on the driver and in tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ...application.batch import KafkaBatch
    from ...application.kafka_sink import KafkaSink
    from ...application.micro_batch_stream import KafkaMicroBatchStream
    from ...application.range_read import RangeRead
    from ...application.sink_task import SinkTask
    from ...domain.options import SinkOptions, SourceOptions


class Wiring(ABC):
    """Makes use cases for options. Crosses to executors with the readers, so it holds nothing.

    Leaving a context gives back the clients behind the use case.
    """

    @abstractmethod
    def batch(self, options: SourceOptions) -> AbstractContextManager[KafkaBatch]:
        """Give the driver's side of a batch query."""

    @abstractmethod
    def stream(self, options: SourceOptions) -> AbstractContextManager[KafkaMicroBatchStream]:
        """Give the driver's side of a streaming query."""

    @abstractmethod
    def range_read(self, options: SourceOptions) -> AbstractContextManager[RangeRead]:
        """Give a task's side of either."""

    @abstractmethod
    def kafka_sink(self, options: SinkOptions) -> AbstractContextManager[KafkaSink]:
        """Give the driver's side of a stream that is written exactly once."""

    @abstractmethod
    def sink_task(self, options: SinkOptions) -> AbstractContextManager[SinkTask]:
        """Give a task's side of whatever is written."""
