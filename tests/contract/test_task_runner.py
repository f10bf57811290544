"""The contract of ``ThreadTaskRunner``; ``SparkTaskRunner`` runs the suite in `tests/spark`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.adapters.continuous.threads import ThreadTaskRunner
from pyspark_kafka.testing import TaskRunnerContract

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka.ports.continuous import TaskRunner


class TestThreadTaskRunner(TaskRunnerContract):
    @pytest.fixture
    def runner(self) -> Iterator[TaskRunner]:
        """Return a runner, whose tasks end by themselves."""
        runner = ThreadTaskRunner()
        yield runner
        runner.cancel(30)
