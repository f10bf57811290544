import subprocess
import sys
from typing import Any

import pytest

from pyspark_kafka.bootstrap.container import container_for, sink_container_for
from pyspark_kafka.domain.errors import MissingDependencyError, OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import SourceOptions, parse_source_options
from pyspark_kafka.domain.security.policy import UNRESTRICTED


def options(client: str, **given: str) -> SourceOptions:
    needed = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "client": client}
    return parse_source_options({**needed, **given}, QueryKind.BATCH, UNRESTRICTED)


def source_container(client: str, **given: str) -> Any:
    return container_for(options(client, **given))


def sink_container(client: str, **given: str) -> Any:
    needed = {"kafka.bootstrap.servers": "h:1", "topic": "t", "client": client}
    options = parse_sink_options({**needed, **given}, QueryKind.STREAM, UNRESTRICTED)
    return sink_container_for(options)


CONTAINERS = pytest.mark.parametrize("make", [source_container, sink_container])
ADAPTERS = pytest.mark.parametrize(
    ("make", "adapter"),
    [
        (source_container, "offset_fetcher"),
        (source_container, "record_reader"),
        (sink_container, "record_writer"),
    ],
)


@ADAPTERS
def test_clients_connect_when_they_are_used(make, adapter, client):
    container = make(client)
    assert getattr(container, adapter)() is getattr(container, adapter)()
    container.shutdown_resources()


@CONTAINERS
def test_a_setting_that_a_client_does_not_know_is_refused(make, client):
    container = make(client, **{"kafka.no.such.thing": "1"})
    use = container.record_writer if make is sink_container else container.offset_reader
    with pytest.raises(OptionsError, match=r"kafka\.no\.such\.thing' is not known"):
        use()
    container.shutdown_resources()


@ADAPTERS
@pytest.mark.usefixtures("without_confluent")
def test_a_missing_client_names_the_extra(make, adapter):
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyspark-kafka\[confluent\]'"):
        getattr(make("confluent"), adapter)()


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
