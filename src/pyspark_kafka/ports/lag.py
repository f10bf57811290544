"""Where the lag and the progress of queries are reported."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..domain.continuous.progress import EpochProgress
    from ..domain.lag.lag import QueryLag


class LagExporter(ABC):
    """Exports the lag of queries; called from one thread at a time.

    Any exception is logged, and affects neither the query nor other exporters.
    """

    @abstractmethod
    def export(self, lag: QueryLag) -> None:
        """Export the lag of a query after a batch; it is valid until the next one."""

    @abstractmethod
    def query_ended(self, query_id: str, run_id: str) -> None:
        """Forget a run of a query; perhaps nothing of it was exported."""

    def close(self) -> None:  # noqa: B027 - most hold no resources
        """Release resources. Nothing is exported afterwards. A second call does nothing."""


class ProgressListener(ABC):
    """Takes the progress of continuous queries, which call it from a thread of their own each.

    A call delays the next epoch of its query, but no record. Any exception is logged, and affects
    neither the query nor other listeners.
    """

    @abstractmethod
    def progressed(self, progress: EpochProgress) -> None:
        """Take the progress of a query; it is valid until the next one."""

    @abstractmethod
    def query_ended(self, query_id: str, run_id: str) -> None:
        """Forget a run of a query; perhaps it made no progress."""

    def close(self) -> None:  # noqa: B027 - most hold no resources
        """Release resources; queries do not call it. A second call does nothing."""
