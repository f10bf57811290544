"""How Spark's classes come by the use cases, on the driver and in tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ..domain.options import SinkOptions, SourceOptions
    from .batch import KafkaBatch
    from .kafka_sink import KafkaSink
    from .micro_batch_stream import KafkaMicroBatchStream
    from .range_read import RangeRead
    from .sink_task import SinkTask


class UseCases(ABC):
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
