import sys
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints

import pyarrow as pa
import pytest

from pyspark_kafka import (
    QueryKind,
    SourceOptions,
    adapters,
    container_for,
    parse_sink_options,
    parse_source_options,
    sink_container_for,
)
from pyspark_kafka.adapters import named_functions
from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.bootstrap import plugins
from pyspark_kafka.bootstrap.plugins import FORMAT_GROUP, PluginError, value_format_named
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.sink import SinkOptions
from pyspark_kafka.domain.reading.records import ALL_COLUMNS, Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.transaction import TransactionState
from tests.line_values import VALUE_FORMAT

CLIENT = """
from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.adapters.memory.reading import MemoryOffsetFetcher
from pyspark_kafka.adapters.memory.reading import MemoryRecordReader
from pyspark_kafka.domain.writing.transaction import TransactionState
from pyspark_kafka.ports.client import Client
from pyspark_kafka.ports.reading import RecordReader

cluster = MemoryCluster()
cluster.create_topic("t")
cluster.produce("t", b"v")
closed = []

class Reader(RecordReader):
    def __init__(self, options):
        self.memory = MemoryRecordReader(cluster, options)

    def read(self, offset_range, projection):
        return self.memory.read(offset_range, projection)

    def close(self):
        closed.append(self)

client = Client(lambda options: MemoryOffsetFetcher(cluster, options), Reader)
"""

PARTS = """
from dependency_injector import providers
from pyspark_kafka.adapters.memory.clock import MemoryClock
from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents

def first(container):
    container.clock.override(MemoryClock(1))
    container.events.override(providers.Singleton(MemorySourceEvents))
    container.metadata_log.override(providers.Singleton(MemoryMetadataLog))

def second(container):
    container.clock.override(MemoryClock(container.clock().now_ms() + 1))
"""

WRITERS = """
from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.adapters.memory.writing import MemoryRecordWriter
from pyspark_kafka.adapters.memory.writing import MemoryTransactions
from pyspark_kafka.ports.client import Client

cluster = MemoryCluster()
cluster.create_topic("t")

def reads(options):
    raise AssertionError("a sink reads nothing")

def writes(options):
    return MemoryRecordWriter(cluster)

def transactions(options):
    return MemoryTransactions(cluster)

reader = Client(reads, reads)
writer = Client(reads, reads, writes)
client = Client(reads, reads, writes, transactions)
"""

SINK_PARTS = """
from dependency_injector import providers
from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents

def first(container):
    container.events.override(providers.Singleton(MemorySourceEvents))

def second(container):
    assert isinstance(container.events(), MemorySourceEvents)
    container.metadata_log.override(providers.Singleton(MemoryMetadataLog))
"""

EXACTLY_ONCE = {"deliveryGuarantee": "exactly-once", "metadataPath": "memory://unused"}


@pytest.fixture
def install(tmp_path, monkeypatch):
    modules = []

    def installed(name: str, source: str, group: str, **entries: str) -> None:
        metadata = tmp_path / name / f"{name}-1.dist-info"
        metadata.mkdir(parents=True)
        (tmp_path / name / f"{name}.py").write_text(source)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        lines = [f"[pyspark_kafka.{group}]", *(f"{key} = {entries[key]}" for key in entries)]
        (metadata / "entry_points.txt").write_text("\n".join(lines))
        monkeypatch.syspath_prepend(tmp_path / name)
        modules.append(name)

    yield installed
    for name in modules:
        sys.modules.pop(name, None)


def options(client: str) -> SourceOptions:
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "client": client}
    return parse_source_options(given, QueryKind.BATCH)


def sink_options(client: str, **given: str) -> SinkOptions:
    needed = {"kafka.bootstrap.servers": "h:1", "topic": "t", "client": client}
    return parse_sink_options({**needed, **given}, QueryKind.STREAM)


def for_client(client: str, *, is_sink: bool) -> object:
    if is_sink:
        return sink_container_for(sink_options(client))
    return container_for(options(client))


def test_a_client_is_found_by_its_name(install):
    install("brought", CLIENT, "clients", mine="brought:client")
    container = container_for(options("mine"))
    [planned] = container.batch().plan_input_partitions()
    [batch] = container.range_read().read(planned, Projection(("value",)))
    assert batch.to_pylist() == [{"value": b"v"}]


def test_an_adapter_is_made_once_and_closed_with_its_container(install):
    install("brought", CLIENT, "clients", mine="brought:client")
    container = container_for(options("mine"))
    reader = container.record_reader()
    assert container.record_reader() is reader
    container.shutdown_resources()
    assert import_module("brought").closed == [reader]


def test_what_is_not_used_is_not_loaded(install):
    install("brought", "raise ImportError", "clients", mine="brought:client")
    container_for(options("memory"))
    assert "brought" not in sys.modules


@pytest.mark.parametrize("is_sink", [False, True])
def test_an_unknown_client_is_refused_with_those_that_are_installed(install, is_sink):
    install("brought", CLIENT, "clients", mine="brought:client")
    with pytest.raises(OptionsError, match=r"'mime' is not known\..*'memory', 'mine'\."):
        for_client("mime", is_sink=is_sink)


@pytest.mark.parametrize("source", ["raise RuntimeError('no luck')", "import no_such_thing", ""])
def test_a_client_that_cannot_be_loaded_is_named(install, source):
    install("brought", source, "clients", mine="brought:client")
    with pytest.raises(PluginError, match=r"'brought:client' cannot be used") as caught:
        container_for(options("mine"))
    assert str(caught.value.__cause__) in str(caught.value)


def test_an_object_that_is_not_a_client_is_refused(install):
    install("brought", "client = 'a text'", "clients", mine="brought:client")
    with pytest.raises(PluginError, match="it is not a Client: 'a text'"):
        container_for(options("mine"))


def test_two_distributions_with_one_name_are_refused(install):
    install("brought", CLIENT, "clients", mine="brought:client")
    install("another", CLIENT, "clients", mine="another:client")
    with pytest.raises(PluginError, match=r"'brought:client' has the same name"):
        container_for(options("mine"))


def test_new_containers_are_configured(install):
    install("parts", PARTS, "containers", b="parts:second", a="parts:first")
    container = container_for(options("memory"))
    assert isinstance(container.clock(), MemoryClock)
    assert container.clock().now_ms() == 2
    assert isinstance(container.events(), MemorySourceEvents)
    assert isinstance(container.metadata_log(), MemoryMetadataLog)


def test_containers_do_not_share_overridden_singletons(install):
    install("parts", PARTS, "containers", a="parts:first")
    one, other = container_for(options("memory")), container_for(options("memory"))
    assert one.metadata_log() is not other.metadata_log()


@pytest.mark.parametrize("group", ["containers", "sink_containers"])
def test_a_configuration_that_cannot_be_called_is_named(install, group):
    install("parts", "first = 1", group, a="parts:first")
    with pytest.raises(PluginError, match=r"'parts:first' cannot be used: it is not a function: 1"):
        for_client("memory", is_sink=group == "sink_containers")


def test_a_configuration_that_cannot_be_loaded_is_named(install):
    install("parts", "", "containers", a="parts:first")
    with pytest.raises(PluginError, match=r"'parts:first' cannot be used"):
        container_for(options("memory"))


def test_a_client_writes_if_it_has_a_writer(install):
    install("brought", WRITERS, "clients", mine="brought:writer")
    container = sink_container_for(sink_options("mine"))
    container.sink_task().write([pa.RecordBatch.from_pydict({"value": [b"v"]})])
    partition = TopicPartition("t", 0)
    assert import_module("brought").cluster.watermarks(partition, committed_only=True) == (0, 1)
    assert container.record_writer() is container.record_writer()


def test_a_client_that_only_reads_is_refused_by_its_name(install):
    install("brought", WRITERS, "clients", mine="brought:reader")
    with pytest.raises(OptionsError, match="Client 'mine' only reads"):
        sink_container_for(sink_options("mine"))


def test_a_client_writes_exactly_once_if_it_has_transactions(install):
    install("brought", WRITERS, "clients", mine="brought:client")
    container = sink_container_for(sink_options("mine", **EXACTLY_ONCE))
    container.metadata_log.override(MemoryMetadataLog())
    written = container.sink_task().write([pa.RecordBatch.from_pydict({"value": [b"v"]})], "id")
    cluster = import_module("brought").cluster
    assert list(cluster.find_transactions("", TransactionState.ONGOING)) == ["id-0"]
    container.kafka_sink().commit(0, None, [written])
    assert cluster.find_transactions("", TransactionState.ONGOING) == {}


def test_a_client_without_transactions_refuses_exactly_once_by_its_name(install):
    install("brought", WRITERS, "clients", mine="brought:writer")
    with pytest.raises(OptionsError, match="'exactly-once' is not supported by the client 'mine'"):
        sink_container_for(sink_options("mine", **EXACTLY_ONCE))
    sink_container_for(sink_options("mine"))


def test_new_sink_containers_are_configured(install):
    install("parts", SINK_PARTS, "sink_containers", b="parts:second", a="parts:first")
    container = sink_container_for(sink_options("memory"))
    assert isinstance(container.events(), MemorySourceEvents)
    assert isinstance(container.metadata_log(), MemoryMetadataLog)


def test_containers_of_sources_and_sinks_are_configured_separately(install):
    install("parts", SINK_PARTS, "sink_containers", a="parts:first")
    assert not isinstance(container_for(options("memory")).events(), MemorySourceEvents)
    install("others", PARTS, "containers", a="others:first")
    assert isinstance(container_for(options("memory")).clock(), MemoryClock)
    assert sink_container_for(sink_options("memory")).metadata_log() is None


PIGEON_CLIENT = """
from ..memory.client import memory_client
from ..memory.cluster import MemoryCluster

cluster = MemoryCluster()
cluster.create_topic("orders")
CLIENT = memory_client(lambda: cluster)
"""

PIGEON = {"client": "carrier-pigeon", "kafka.bootstrap.servers": "loft"}


@pytest.fixture
def pigeon_folder(tmp_path, monkeypatch):
    package = tmp_path / "carrier_pigeon"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "client.py").write_text(PIGEON_CLIENT)
    monkeypatch.setattr(adapters, "__path__", [*adapters.__path__, str(tmp_path)])
    yield
    for name in [name for name in sys.modules if ".carrier_pigeon" in name]:
        del sys.modules[name]
    vars(adapters).pop("carrier_pigeon", None)


@pytest.fixture
def pigeon_line(monkeypatch):
    added = {"carrier-pigeon": "pyspark_kafka.adapters.carrier_pigeon.client"}
    monkeypatch.setattr(plugins, "CLIENTS", {**plugins.CLIENTS, **added})


@pytest.mark.usefixtures("pigeon_folder", "pigeon_line")
def test_a_client_takes_one_folder_and_one_line():
    sink = sink_container_for(parse_sink_options({**PIGEON, "topic": "orders"}, QueryKind.BATCH))
    sink.sink_task().write([pa.RecordBatch.from_pydict({"value": ["tea", "coffee"]})])
    sink.shutdown_resources()

    source = container_for(parse_source_options({**PIGEON, "subscribe": "orders"}, QueryKind.BATCH))
    read = source.range_read().read
    ranges = source.batch().plan_input_partitions()
    values = [
        value for one in ranges for batch in read(one, ALL_COLUMNS) for value in batch["value"]
    ]
    source.shutdown_resources()
    assert [value.as_py() for value in values] == [b"tea", b"coffee"]
    assert "carrier-pigeon" in plugins.client_names()


@pytest.mark.usefixtures("pigeon_folder")
def test_a_folder_without_its_line_is_not_a_client():
    with pytest.raises(OptionsError, match="'carrier-pigeon'"):
        container_for(parse_source_options({**PIGEON, "subscribe": "orders"}, QueryKind.BATCH))


@pytest.fixture
def install_format(monkeypatch):
    def add(*values: str) -> None:
        points = EntryPoints(EntryPoint("line", value, FORMAT_GROUP) for value in values)
        for module in (named_functions, plugins):
            monkeypatch.setattr(module, "entry_points", points.select)

    return add


def test_a_format_of_another_distribution(install_format):
    install_format("tests.line_values:VALUE_FORMAT", "tests.line_values:VALUE_FORMAT")
    assert value_format_named("line") is VALUE_FORMAT


def test_a_format_that_is_not_installed(install_format):
    install_format("tests.line_values:VALUE_FORMAT")
    with pytest.raises(OptionsError) as caught:
        value_format_named("avrow")
    [problem] = caught.value.problems
    assert problem == (
        "Format 'avrow' is not known. Known formats are avro, json, protobuf, line. Did you mean "
        "'avro'?"
    )
    with pytest.raises(OptionsError, match=r"protobuf, line\.$"):
        value_format_named("xml")


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (["tests.line_values:MAX_ROWS"], "it is not a ValueFormat: 8"),
        (["tests.line_values:NOTHING"], "AttributeError"),
        (["a:b", "c:d"], "'c:d' has the same name, 'line'"),
    ],
)
def test_an_error_names_an_unusable_entry_point(install_format, values, problem):
    install_format(*values)
    with pytest.raises(PluginError, match=problem):
        value_format_named("line")
