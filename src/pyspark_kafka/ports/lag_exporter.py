"""The need to tell others how far queries are behind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..domain.lag import QueryLag


class LagExporter(ABC):
    """Takes the lag of queries, from one thread at a time.

    It may raise what it likes: that is logged, and neither the query nor another exporter notices.
    """

    @abstractmethod
    def export(self, lag: QueryLag) -> None:
        """Take the lag of a query after a batch; it stands for the query's lag until the next."""

    @abstractmethod
    def query_ended(self, query_id: str, run_id: str) -> None:
        """Forget a run of a query, of which perhaps nothing was exported."""

    def close(self) -> None:  # noqa: B027 - most have nothing to give back
        """Give back what is held. Nothing is exported after it. A second call does nothing."""
