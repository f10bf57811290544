import threading
from typing import Final

import pytest

from pyspark_kafka.domain.continuous.progress import EpochProgress, QueryIdentity
from pyspark_kafka.ports.lag import ProgressListener
from pyspark_kafka.testing import ProgressListenerContract as Suite

from .adapter import Faults


class Keeping(ProgressListener):
    """Keeps the newest progress of each query that runs."""

    def __init__(self) -> None:
        self.reports: dict[str, EpochProgress] = {}

    def progressed(self, progress: EpochProgress) -> None:
        self.reports[progress.query.query_id] = progress

    def query_ended(self, query_id: str, run_id: str) -> None:
        if query_id in self.reports and self.reports[query_id].query.run_id == run_id:
            del self.reports[query_id]

    def epoch(self, query: QueryIdentity) -> int | None:
        found = self.reports.get(query.query_id)
        return None if found is None else found.epoch


def _suite(adapter: type[Keeping], seconds: float = 0.1) -> type:
    class Held(Suite):
        max_seconds = seconds

        @pytest.fixture
        def listener(self):
            return adapter()

        @pytest.fixture
        def observed(self, listener):
            return listener.epoch

    return Held


wrong: Final = Faults(Keeping, _suite, _suite(Keeping, 10))


@wrong(Suite.test_each_report_replaces_the_last, "progressed")
def does_nothing(self, progress):
    pass


@wrong(Suite.test_a_query_needs_no_rows, "progressed")
def fails_if_no_broker_knows_the_lag(self, progress):
    assert progress.lag is not None
    Keeping.progressed(self, progress)


@wrong(Suite.test_queries_end_independently, "query_ended")
def keeps_the_progress_of_an_ended_query(self, query_id, run_id):
    pass


@wrong(Suite.test_queries_report_from_threads_of_their_own)
class OneThread(Keeping):
    """Fails in every thread but the one that made it."""

    def __init__(self):
        super().__init__()
        self._thread = threading.get_ident()

    def progressed(self, progress):
        if threading.get_ident() != self._thread:
            raise RuntimeError("another thread")
        super().progressed(progress)
