import subprocess
import sys

import pytest

from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.bootstrap.container import container_for
from pyspark_kafka.bootstrap.plugins import client_names
from pyspark_kafka.domain.errors import MissingDependencyError, OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.security.policy import UNRESTRICTED


def options(client: str) -> SourceOptions:
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "client": client}
    return parse_source_options(given, QueryKind.BATCH)


def test_an_unknown_client_is_refused_with_those_that_are_known():
    with pytest.raises(OptionsError) as caught:
        container_for(options("kafka_python"))
    assert "'kafka_python'" in str(caught.value)
    assert all(f"'{client}'" in str(caught.value) for client in client_names())


@pytest.mark.parametrize("client", ["confluent", "kafka-python"])
def test_clients_connect_when_they_are_used(client):
    container = container_for(options(client))
    assert container.offset_fetcher() is container.offset_fetcher()
    assert container.record_reader() is container.record_reader()
    container.shutdown_resources()


@pytest.mark.parametrize("client", ["confluent", "kafka-python"])
def test_a_setting_that_a_client_does_not_know_is_refused(client):
    given = {
        "kafka.bootstrap.servers": "h:1",
        "subscribe": "t",
        "client": client,
        "kafka.no.such.thing": "1",
    }
    container = container_for(parse_source_options(given, QueryKind.BATCH, UNRESTRICTED))
    with pytest.raises(OptionsError, match=r"kafka\.no\.such\.thing' is not known"):
        container.offset_reader().partitions()
    container.shutdown_resources()


@pytest.mark.usefixtures("without_confluent")
def test_a_missing_client_names_the_extra():
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyspark-kafka\[confluent\]'"):
        container_for(options("confluent")).offset_fetcher()


def test_any_provider_can_be_overridden():
    cluster, clock = MemoryCluster(), MemoryClock(now_ms=-42)
    cluster.create_topic("t")
    cluster.produce("t", b"v")
    container = container_for(options("memory"))
    container.memory_cluster.override(cluster)
    container.clock.override(clock)
    assert container.clock().now_ms() == -42
    [planned] = container.batch().plan_input_partitions()
    [batch] = container.range_read().read(planned, Projection(("value",)))
    assert batch.to_pylist() == [{"value": b"v"}]


def test_embedding_needs_neither_spark_nor_a_client():
    script = (
        "import sys\n"
        "import pyspark_kafka.bootstrap.container\n"
        "loaded = {'pyspark', 'kafka', 'confluent_kafka'} & sys.modules.keys()\n"
        "sys.exit(str(loaded) if loaded else 0)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_missing_spark_names_the_extra():
    script = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import pyspark_kafka; pyspark_kafka.DefaultSource"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    error = done.stderr.splitlines()[-1]
    assert "MissingDependencyError" in error
    assert "pip install 'pyspark-kafka[spark]'" in error
