"""The contract suites, as authors of adapters use them."""

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from dependency_injector import providers

import pyspark_kafka.testing
from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.domain.errors import MissingDependencyError
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.testing import ALL, Capability, KafkaWorld, MemoryWorld, Record, unique_name

SUITE = """
import itertools
import pytest
from pyspark_kafka.ports.clock import Clock
from pyspark_kafka.testing import ClockContract, MemoryWorld, OffsetFetcherContract, World

class BackwardClock(Clock):
    def __init__(self):
        self.times = itertools.count(41, -1)
    def now_ms(self):
        return next(self.times)
    def sleep_ms(self, milliseconds):
        pass

class TestClock(ClockContract):
    @pytest.fixture
    def clock(self):
        return BackwardClock()

class LesserWorld(World):
    capabilities = frozenset()
    def __init__(self):
        super().__init__("memory")
        self.memory = MemoryWorld()
    addresses = property(lambda self: self.memory.addresses)
    def topic(self, partitions=1, **config):
        return self.memory.topic(partitions)
    def produce(self, partition, records):
        self.memory.produce(partition, records)
    def make_container(self, options):
        return self.memory.make_container(options)

class TestFetcher(OffsetFetcherContract):
    @pytest.fixture
    def world(self):
        return LesserWorld()

class TestNothing(ClockContract):
    pass
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """Run suites on adapters that break their contracts."""
    suite = tmp_path_factory.mktemp("suite") / "test_suite.py"
    suite.write_text(SUITE)
    command = (sys.executable, "-m", "pytest", "-ra", f"--rootdir={suite.parent}", str(suite))
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_a_suite_fails_an_adapter_that_breaks_its_contract(output):
    for test in ("test_time_does_not_go_back", "test_time_passes_during_a_sleep"):
        assert re.search(rf"FAILED \S+::TestClock::{test}\b", output)


def test_assertions_say_what_they_compared(output):
    assert "assert 20 <= (40 - 41)" in output


def test_what_a_world_does_not_declare_is_skipped(output):
    assert "LesserWorld does not declare: transactions that are committed and aborted" in output
    assert "LesserWorld does not declare: adding partitions to topics" in output


def test_a_wrong_result_is_found(output):
    assert re.search(r"FAILED \S+::TestFetcher::test_an_undeclared_capability_is_refused\b", output)


def test_a_fixture_that_is_missing_is_named(output):
    assert "NotImplementedError: TestNothing must override the fixture 'clock'" in output


def test_all_public_names_exist():
    named = set(pyspark_kafka.testing.__all__)
    assert all(hasattr(pyspark_kafka.testing, name) for name in named)


def test_importing_the_suites_loads_no_client_and_no_broker():
    script = (
        "import sys, pyspark_kafka.testing\n"
        "heavy = {'confluent_kafka', 'kafka', 'pyspark', 'pyspark_kafka.brokers'}\n"
        "sys.exit(str(heavy & sys.modules.keys()) if heavy & sys.modules.keys() else 0)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_missing_pytest_names_the_extra():
    script = "import sys; sys.modules['pytest'] = None; import pyspark_kafka.testing"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert "pip install 'pyspark-kafka[testing]'" in done.stderr.splitlines()[-1]


def test_a_missing_librdkafka_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    # It is not started.
    cluster = KafkaCluster()
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyspark-kafka\[confluent\]'"):
        KafkaWorld("kafka-python", unique_name, cluster)


def test_a_world_closes_the_containers_that_it_made():
    closed = []

    def part() -> Iterator[str]:
        yield "a reader"
        closed.append("a reader")

    world = MemoryWorld()
    container = world.container()
    container.record_reader.override(providers.Resource(part))
    assert container.record_reader() == "a reader"
    world.close()
    world.close()
    assert closed == ["a reader"]


def test_a_world_in_memory_takes_a_cluster():
    world = MemoryWorld()
    partition = TopicPartition(world.topic(), 0)
    world.produce(partition, [Record(b"v")])
    assert world.cluster.watermarks(partition, committed_only=True) == (0, 1)
    assert world.capabilities == ALL - {Capability.COMPRESSION}
