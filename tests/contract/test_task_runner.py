"""The contract of ``ThreadTaskRunner``; ``SparkTaskRunner`` runs the suite in `tests/spark`."""

import pytest

from pyspark_kafka.adapters.continuous.threads import ThreadTaskRunner
from pyspark_kafka.testing import TaskRunnerContract


class TestThreadTaskRunner(TaskRunnerContract):
    @pytest.fixture
    def runner(self):
        runner = ThreadTaskRunner()
        yield runner
        runner.cancel(30)
