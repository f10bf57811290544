import pytest

from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.application.writing.kafka_sink import KafkaSink
from pyspark_kafka.bootstrap.container import require_stream_client, sink_container_for
from pyspark_kafka.bootstrap.plugins import client_named, client_names
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import SinkOptions, parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.security.policy import UNRESTRICTED

EXACTLY_ONCE = {"deliveryGuarantee": "exactly-once", "metadataPath": "memory://unused"}


def options(client: str, **given: str) -> SinkOptions:
    needed = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", "client": client}
    settings = {name.replace("__", "."): value for name, value in given.items()}
    return parse_sink_options({**needed, **settings}, QueryKind.STREAM, UNRESTRICTED)


def test_transactions_connect_when_they_are_used():
    container = sink_container_for(options("kafka-python", **EXACTLY_ONCE))
    assert container.transactions() is container.transactions()
    container.shutdown_resources()


@pytest.mark.parametrize("name", client_names())
def test_exactly_once_needs_a_client_with_transactions(name):
    wanted = options(name, **EXACTLY_ONCE)
    if client_named(name, MemoryCluster).transactions is not None:
        assert isinstance(sink_container_for(wanted).kafka_sink(), KafkaSink)
        return
    problem = f"'exactly-once' is not supported by the client '{name}'"
    with pytest.raises(OptionsError, match=problem) as found:
        sink_container_for(wanted)
    assert "Set 'client' to 'kafka-python'" in str(found.value)


@pytest.mark.parametrize("name", client_names())
def test_a_continuous_query_refuses_exactly_once_in_the_words_of_a_micro_batch_query(name):
    client, wanted = client_named(name, MemoryCluster), options(name, **EXACTLY_ONCE)
    needed = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "client": name}
    source = parse_source_options(needed, QueryKind.STREAM)
    if client.transactions is not None:
        assert require_stream_client(client, source, wanted) is client.stream_client
        return
    with pytest.raises(OptionsError) as batches:
        sink_container_for(wanted)
    with pytest.raises(OptionsError) as continuous:
        require_stream_client(client, source, wanted)
    assert continuous.value.problems == batches.value.problems


def test_the_log_is_in_the_checkpoint(tmp_path):
    given = {"deliveryGuarantee": "exactly-once", "checkpointLocation": str(tmp_path)}
    container = sink_container_for(options("memory", **given))
    places = [container.metadata_log(), container.checkpoint_offsets()]
    assert [str(place) for place in places] == [
        f"{tmp_path}/{path}" for path in ("sinks/pyspark_kafka/transactions", "offsets")
    ]


def test_the_log_is_at_the_metadata_path(tmp_path):
    """With `metadataPath` the checkpoint is not read: the driver may have no access to it."""
    given = {
        "deliveryGuarantee": "exactly-once",
        "checkpointLocation": "nowhere://checkpoint",
        "metadataPath": str(tmp_path / "log"),
    }
    container = sink_container_for(options("memory", **given))
    assert str(tmp_path / "log" / "transactions") in str(container.metadata_log())
    assert container.checkpoint_offsets() is None
