"""The contract suite of ``ProgressListener``."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ..domain.continuous.latency import LatencyHistogram
from ..domain.continuous.messages import TaskProgress
from ..domain.continuous.progress import EpochProgress, QueryIdentity
from ..domain.partition_offsets import PartitionOffsets
from ..domain.topic_partition import TopicPartition
from ..ports.progress_listener import ProgressListener


def _progress(
    epoch: int, *, query_id: str = "query", name: str | None = "totals", rows: int = 3
) -> EpochProgress:
    partition = TopicPartition("t", 0)
    return EpochProgress(
        query=QueryIdentity(query_id, f"run of {query_id}", name),
        source="KafkaContinuous[Subscribe[t]]",
        sink="Kafka[totals]",
        epoch=epoch,
        timestamp_ms=1_700_000_000_000,
        duration_ms=1_000,
        start=PartitionOffsets({partition: 2}),
        end=PartitionOffsets({partition: 2 + rows}),
        latest=PartitionOffsets({partition: 2 + rows}) if rows else None,
        work=TaskProgress(rows, rows, LatencyHistogram.of([2] * rows)),
        tasks=1,
        restarts=0,
    )


class ProgressListenerContract:
    """The contract of ``ProgressListener``; a subclass overrides the fixture ``listener``."""

    @pytest.fixture
    def listener(self) -> ProgressListener:
        """Return the listener under test."""
        raise NotImplementedError(f"{type(self).__name__} must override the fixture 'listener'")

    @pytest.fixture(autouse=True)
    def _closing(self, listener: ProgressListener) -> Iterator[None]:
        """Close the listener after each test, perhaps for a second time."""
        yield
        listener.close()

    def test_every_report_is_taken(self, listener: ProgressListener) -> None:
        """Each report is taken, also twice."""
        for epoch in (0, 1, 1):
            listener.progressed(_progress(epoch))

    def test_a_query_needs_no_name_and_no_rows(self, listener: ProgressListener) -> None:
        """A query may have no name, no rows, and no broker that knows its lag."""
        listener.progressed(_progress(0, name=None))
        listener.progressed(_progress(1, rows=0))

    def test_queries_end_independently(self, listener: ProgressListener) -> None:
        """After the end of one query, another's progress is taken."""
        listener.progressed(_progress(0, query_id="one"))
        listener.progressed(_progress(0, query_id="other"))
        listener.query_ended("one", "run of one")
        listener.progressed(_progress(1, query_id="other"))

    def test_a_query_may_end_without_progress(self, listener: ProgressListener) -> None:
        """The end of a run without reports is taken, also twice."""
        for _ in range(2):
            listener.query_ended("never seen", "run")

    def test_queries_report_from_threads_of_their_own(self, listener: ProgressListener) -> None:
        """Two threads may call at the same time."""
        errors: list[Exception] = []

        def report(query_id: str) -> None:
            try:
                for epoch in range(100):
                    listener.progressed(_progress(epoch, query_id=query_id))
                listener.query_ended(query_id, f"run of {query_id}")
            except Exception as error:  # noqa: BLE001 - raised in the test's thread
                errors.append(error)

        threads = [threading.Thread(target=report, args=(name,)) for name in ("one", "other")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []

    def test_closing_twice_is_allowed(self, listener: ProgressListener) -> None:
        """A second call of close has no effect."""
        listener.progressed(_progress(0))
        listener.close()
        listener.close()
