"""The source of a continuous query, on the driver's side: Spark's ``KafkaContinuousStream``."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

from ...domain.partition_offsets import PartitionOffsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from ...domain.options.source import SourceOptions
    from ...ports.clock import Deadline
    from ..reading.offsets import InitialOffsets, KafkaOffsetReader
    from ..reading.planner import RangePlanner
    from ..reading.stream import ProgressReports


@final
class KafkaContinuousStream:
    """Knows which partitions there are, where they begin, and where they end."""

    def __init__(
        self,
        offset_reader: KafkaOffsetReader,
        planner: RangePlanner,
        initial_offsets: InitialOffsets,
        progress: ProgressReports,
        options: SourceOptions,
    ) -> None:
        self._offset_reader = offset_reader
        self._planner = planner
        self._initial_offsets = initial_offsets
        self._progress = progress
        self._options = options

    def __str__(self) -> str:
        return f"KafkaContinuous[{self._offset_reader}]"

    def initial_offset(self) -> PartitionOffsets:
        """Return the offsets at which a query without a checkpoint starts (``startingOffsets``).

        They are stored before they are returned, so that a restart begins there as well.
        """
        return self._initial_offsets.get()

    def plan_input_partitions(self, start: PartitionOffsets) -> PartitionOffsets:
        """Return the offsets from which the current partitions are read.

        New partitions begin at their earliest offset, which is reported if it is not 0; deleted
        ones are left out.

        :raises DataLossError: if partitions were deleted, or records of new ones are gone, and
            ``failOnDataLoss`` is true.
        """
        current = self._offset_reader.partitions()
        added = self._planner.start_of_added(start, current)
        self._planner.report_deleted(start, current)
        return start.restrict(current).merge(added)

    def latest_offset(self) -> PartitionOffsets:
        """Return the latest offset of every partition of the subscription."""
        return self._offset_reader.latest(PartitionOffsets())

    def commit(self, end: PartitionOffsets, latest: PartitionOffsets | None = None) -> None:
        """Report that an epoch that ends at ``end`` is committed."""
        self._progress.done(end, latest)

    @property
    def fails_on_data_loss(self) -> bool:
        """Whether a loss of data fails the query (``failOnDataLoss``)."""
        return self._options.fail_on_data_loss

    @property
    def timeout_s(self) -> float:
        """How long brokers may take to answer a request."""
        return self._options.java.timeout_ms / 1_000

    def stop(self) -> None:
        """Close the connections to Kafka. A second call does nothing."""
        self._offset_reader.close()


@final
class ShortRequests:
    """Limits how long a query's loop waits for brokers; meanwhile it hears no task, and no stop."""

    def __init__(
        self,
        attempt: Callable[[str], AbstractContextManager[Deadline]],
        is_stopping: Callable[[], bool],
    ) -> None:
        """Take ``attempt``, which limits the waits of a block by the kind of its requests."""
        self._attempt = attempt
        self._is_stopping = is_stopping
        self._resume_at: dict[str, float] = {}
        """When the kinds of requests whose last attempt timed out may be sent again."""

    def are_due(self, kind: str) -> bool:
        """Return whether requests of a kind may be sent now.

        After an attempt that timed out, other kinds have their turn, and a query that stops makes
        no further one.
        """
        resume_at = self._resume_at.get(kind)
        return resume_at is None or (time.monotonic() >= resume_at and not self._is_stopping())

    @contextmanager
    def limit(self, kind: str) -> Iterator[None]:
        """Limit all waits of a block that sends requests of a kind."""
        began = time.monotonic()
        self._resume_at.pop(kind, None)
        with self._attempt(kind) as deadline:
            try:
                yield
            finally:
                if deadline.has_passed:
                    now = time.monotonic()
                    self._resume_at[kind] = now + 2 * (now - began)
