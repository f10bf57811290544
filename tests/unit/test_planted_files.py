"""Files of a checkpoint that another program wrote: each gives a value or an error of the log."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_kafka.adapters.checkpoints.files import query_id_of
from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.adapters.memory.writing import MemoryTransactions
from pyspark_kafka.adapters.spark.stream_reader import KafkaStreamReader
from pyspark_kafka.application.checkpoints.logs import CheckpointLogs
from pyspark_kafka.application.continuous.epochs import EpochLog
from pyspark_kafka.application.reading.offsets import InitialOffsets, StreamStart
from pyspark_kafka.application.writing.kafka_sink import KafkaSink
from pyspark_kafka.application.writing.sink_checkpoint import SinkCheckpoint
from pyspark_kafka.bootstrap.spark import ContainerUseCases
from pyspark_kafka.domain.checkpoints.checkpoint_log import write_batch_end
from pyspark_kafka.domain.checkpoints.entries import BatchState, SinkLogEntry, write_initial_offsets
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.records import Projection
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import TransactionLostError
from pyspark_kafka.domain.writing.transaction import Transaction

OFFSETS = PartitionOffsets({TopicPartition("t", 0): 23})
SINK_OPTIONS = parse_sink_options(
    {
        "kafka.bootstrap.servers": "memory",
        "client": "memory",
        "topic": "t",
        "deliveryGuarantee": "exactly-once",
        "metadataPath": "memory://unused",
    },
    QueryKind.STREAM,
)

VALID = [
    SinkLogEntry(7, BatchState.PREPARED, (Transaction("pyspark-kafka-q-0-0", 1, 2),)).to_bytes(),
    write_batch_end(OFFSETS, 17, {"pyspark_kafka.continuous.runId": "r"}),
    write_initial_offsets(OFFSETS),
    b'{"id":"7b3f36f2-e6b4-4c6f-9d5a-0d6c0f6fb3a1"}',
]

numbers = st.integers() | st.floats() | st.sampled_from([-1, 2**31, 2**63, math.nan, math.inf])
words = st.text() | st.sampled_from(
    ["t", "0", "id", "batchId", "state", "prepared", "transactions", "conf", "batchTimestampMs"]
)
trees: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
texts = st.builds(
    lambda *lines: "\n".join(lines).encode(errors="surrogatepass"),
    st.sampled_from(["v1", "\0v1", "v2", "v0", "v9", ""]),
    trees.map(json.dumps),
    trees.map(json.dumps),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Return a file with a part replaced."""
    content = draw(st.sampled_from(VALID))
    start = draw(st.integers(0, len(content)))
    end = draw(st.integers(start, len(content)))
    return content[:start] + draw(st.binary(max_size=8)) + content[end:]


contents = st.binary() | texts | damaged()
DEEP = (b"v1\n" + b"[" * 100_000, b"\0" + b"[" * 100_000, b"[" * 100_000)
LONG = (b"v1\n" + b"9" * 100_000, b"v" + b"9" * 100_000, b"9" * 100_000)


def _log(content: bytes) -> MemoryMetadataLog:
    log = MemoryMetadataLog()
    log.add(0, content)
    return log


def _recover_sink(content: bytes) -> object:
    transactions = MemoryTransactions(MemoryCluster())
    checkpoint = SinkCheckpoint(None, None, lambda: "q", has_sink_log=False)
    return KafkaSink(_log(content), checkpoint, lambda: transactions, SINK_OPTIONS, "").recover()


READERS: dict[str, Callable[[bytes], object]] = {
    "sink": _recover_sink,
    "initial offsets": lambda content: InitialOffsets(
        _log(content), MemorySourceEvents(), lambda: StreamStart(OFFSETS)
    ).get(),
    "epochs": lambda content: EpochLog(_log(content), _log(b""), "r").recover(),
    "an epoch that was not committed": lambda content: EpochLog(
        _log(content), MemoryMetadataLog(), "r"
    ).recover(),
    "lag": lambda content: CheckpointLogs(_log(content), _log(b"")).state(),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@given(content=contents)
@example(content=DEEP[0])
@example(content=DEEP[1])
@example(content=LONG[0])
@example(content=LONG[1])
def test_any_bytes_in_a_log(read, content):
    with suppress(MetadataLogError, TransactionLostError):
        read(content)


@pytest.mark.parametrize(("name", "content"), [(name, each) for name in READERS for each in DEEP])
def test_an_error_of_a_log_is_short(name, content):
    with pytest.raises(MetadataLogError) as caught:
        READERS[name](content)
    assert len(str(caught.value)) < 1_000


@given(content=contents)
@example(content=DEEP[2])
@example(content=LONG[2])
def test_any_bytes_as_the_metadata_of_a_checkpoint(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("checkpoint")
    (path / "metadata").write_bytes(content)
    with suppress(MetadataLogError):
        query_id_of(StoragePath(str(path)))


@given(content=trees)
def test_any_offsets_from_sparks_checkpoint(content):
    options = {"kafka.bootstrap.servers": "memory", "client": "memory", "subscribe": "t"}
    reader = KafkaStreamReader(
        ContainerUseCases(), parse_source_options(options, QueryKind.STREAM), Projection(("value",))
    )
    with suppress(MetadataLogError):
        reader.commit(content)
    reader.stop()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "got null"),
        ({"t": {"0": -1}}, "the offset of t-0 is negative: -1"),
        ({"t": {"-1": 0}}, "Expected e.g."),
        ({"a/b": {"0": 1}}, "no topic can have the name 'a/b'"),
        ({"t": {"0": math.nan}}, "Expected e.g."),
        ({"t\n" * 1_000: {"0": 1}}, r"no topic can have the name 't\\nt\\n"),
    ],
)
def test_offsets_that_no_checkpoint_has(content, problem):
    with pytest.raises(ValueError, match=problem) as caught:
        PartitionOffsets.from_checkpoint_object(content)
    assert len(str(caught.value)) < 1_000
