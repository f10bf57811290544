"""Where the lag and the progress of queries are reported."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..domain.continuous.progress import EpochProgress
    from ..domain.lag.lag import QueryLag


class QueryReports(ABC):
    """Takes reports of queries one after another, and is notified when a run of a query ends.

    Any exception is logged, and affects neither the query nor other takers of its reports.
    """

    @abstractmethod
    def query_ended(self, query_id: str, run_id: str) -> None:
        """Forget a run of a query, which may not have been reported."""

    def close(self) -> None:  # noqa: B027 - most hold no resources
        """Release resources. Nothing is reported afterwards. A second call does nothing."""


class LagExporter(QueryReports):
    """Exports the lag of queries; called from one thread at a time."""

    @abstractmethod
    def export(self, lag: QueryLag) -> None:
        """Export the lag of a query after a batch; it is valid until the next one."""


class ProgressListener(QueryReports):
    """Takes the progress of continuous queries; each calls it from its own thread.

    A call delays the next epoch of its query, but no record. Queries do not call ``close``.
    """

    @abstractmethod
    def progressed(self, progress: EpochProgress) -> None:
        """Take the progress of a query; it is valid until the next one."""
