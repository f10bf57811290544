"""The readers of files that are read back, held against any bytes."""

from collections.abc import Iterator
from typing import Final

from fsspec.implementations.memory import MemoryFileSystem

from pyspark_kafka.adapters.checkpoints.directory import batch_id_of, file_name, is_temporary
from pyspark_kafka.adapters.checkpoints.files import query_id_of
from pyspark_kafka.adapters.checkpoints.metadata_log import FsspecMetadataLog
from pyspark_kafka.adapters.checkpoints.storages import MemoryDirectory
from pyspark_kafka.adapters.continuous.directory_channel import SignedFiles, digest_of, numbers_of
from pyspark_kafka.adapters.memory.cluster import MemoryCluster
from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.memory.source_events import MemorySourceEvents
from pyspark_kafka.adapters.memory.writing import MemoryTransactions
from pyspark_kafka.application.checkpoints.logs import CheckpointLogs
from pyspark_kafka.application.continuous.epochs import EpochLog
from pyspark_kafka.application.reading.offsets import InitialOffsets, StreamStart
from pyspark_kafka.application.writing.kafka_sink import KafkaSink
from pyspark_kafka.application.writing.sink_checkpoint import SinkCheckpoint
from pyspark_kafka.domain.checkpoints.checkpoint_log import (
    COMMITTED,
    read_batch,
    read_batch_conf,
    read_batch_end,
    write_batch_end,
)
from pyspark_kafka.domain.checkpoints.entries import (
    BatchState,
    SinkLogEntry,
    read_initial_offsets,
    write_initial_offsets,
)
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.continuous.messages import (
    read_command,
    read_message,
    write_command,
    write_message,
)
from pyspark_kafka.domain.errors import MetadataLogError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.sink import parse_sink_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.text import find_error
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.errors import TransactionLostError
from pyspark_kafka.domain.writing.transaction import Transaction
from tests.unit.domain.continuous.messages import COMMANDS, MESSAGES

from .parsers import Parser

OFFSETS: Final = PartitionOffsets({TopicPartition("t", 0): 23, TopicPartition("u", 7): 0})
_QUERY_ID: Final = "7b3f36f2-e6b4-4c6f-9d5a-0d6c0f6fb3a1"
_SINK: Final = parse_sink_options(
    {
        "kafka.bootstrap.servers": "memory",
        "client": "memory",
        "topic": "t",
        "deliveryGuarantee": "exactly-once",
        "metadataPath": "memory://unused",
    },
    QueryKind.STREAM,
)


def _log(*contents: bytes) -> MemoryMetadataLog:
    log = MemoryMetadataLog()
    for number, content in enumerate(contents):
        log.add(number, content)
    return log


def _batch(content: bytes) -> None:
    batch = read_batch(3, content)
    for offsets in batch.offsets.values():
        assert PartitionOffsets.from_checkpoint(offsets.to_json()) == offsets


def _batch_end(content: bytes) -> None:
    end = read_batch_end(content)
    conf = read_batch_conf(content)
    written = write_batch_end(end, 17, conf)
    assert read_batch_end(written) == end
    assert read_batch_conf(written) == conf


def _epochs(content: bytes) -> None:
    logged = EpochLog(_log(content), MemoryMetadataLog(), "r").recover()
    if logged.last:
        assert logged.planned is None
        assert logged.last.number == 0


def _committed_epochs(content: bytes) -> None:
    assert EpochLog(_log(content), _log(COMMITTED), "r").recover().last


def _checkpoint(content: bytes) -> None:
    valid = write_batch_end(OFFSETS, 17)
    for offsets, commits in ((_log(content), _log()), (_log(valid, content), _log(COMMITTED))):
        state = CheckpointLogs(offsets, commits).state()
        assert state.offsets_in_flight >= 0


def _initial_offsets(content: bytes) -> None:
    start = StreamStart(OFFSETS)
    found = InitialOffsets(_log(content), MemorySourceEvents(), lambda: start).get()
    assert read_initial_offsets(write_initial_offsets(found)) == found


def _sink_entry(content: bytes) -> None:
    entry = SinkLogEntry.from_bytes(content)
    assert SinkLogEntry.from_bytes(entry.to_bytes()) == entry


def _sink(content: bytes) -> None:
    transactions = MemoryTransactions(MemoryCluster())
    for query_id in (None, _QUERY_ID):
        checkpoint = SinkCheckpoint(None, None, lambda: query_id, has_sink_log=False)  # noqa: B023
        sink = KafkaSink(_log(content), checkpoint, lambda: transactions, _SINK, "")
        assert sink.recover().committed_through >= -1


def _query_id(content: bytes) -> None:
    MemoryFileSystem.store.clear()
    MemoryFileSystem().pipe_file("/checkpoint/metadata", content)
    assert len(query_id_of(StoragePath("memory://checkpoint"))) == 36


def _listed_log(content: bytes) -> None:
    """Read a log whose directory has files of these names; ``/`` ends a name."""
    MemoryFileSystem.store.clear()
    for name in content.decode(errors="replace").split("\n"):
        if name and "/" not in name:
            MemoryFileSystem().pipe_file(f"/log/{name}", b"content")
    log = FsspecMetadataLog(StoragePath("memory://log"))
    ids = log.batch_ids()
    assert list(ids) == sorted(ids)
    for number in ids:
        assert batch_id_of(file_name(number)) == number
        assert log.get(number) == b"content"
    latest = log.latest()
    assert (latest is None) == (not ids)
    log.purge(10)
    assert all(number >= 10 for number in log.batch_ids())


def _names(content: bytes) -> None:
    name = content.decode(errors="replace")
    assert sum(map(len, numbers_of([name]).values())) <= 1
    assert not (is_temporary(name) and batch_id_of(name) is not None)


def _signed(content: bytes) -> None:
    """A file that is not from this channel is not read, and is removed."""
    directory = MemoryDirectory(MemoryFileSystem(), "/channel")
    MemoryFileSystem.store.clear()
    files = SignedFiles(directory, b"the key of the channel")
    files.write("a", b"payload")
    [name] = (file.name for file in directory.files())
    valid = directory.read(name)
    MemoryFileSystem.store.clear()
    directory.create(name, content)
    assert files.read("a") == (b"payload" if content == valid else None)
    files.write("b", content)
    assert files.read("b") == content


def _message(content: bytes) -> None:
    message = read_message(content)
    # Texts have a limit when they are written.
    shortened = read_message(write_message(message))
    assert read_message(write_message(shortened)) == shortened
    assert shortened.task == message.task
    assert digest_of(message.task)
    assert str(message.task)


def _command(content: bytes) -> None:
    command = read_command(content)
    assert read_command(write_command(command)) == command


def _offsets_text(content: bytes) -> None:
    offsets = PartitionOffsets.from_checkpoint(content.decode(errors="surrogateescape"))
    assert PartitionOffsets.from_json(offsets.to_json()) == offsets


def _failure_text(content: bytes) -> None:
    found = find_error(content.decode(errors="replace"))
    assert found is None or found.text.startswith("[")


def _all() -> Iterator[Parser]:
    batches = [
        write_batch_end(OFFSETS, 17, {"pyspark_kafka.continuous.runId": "r"}),
        b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{}}\n-\n{"t":{"0":1}}',
        b'v2\n{}\nsource:{"t":{"0":1}}\nother:{"offset":1}',
        COMMITTED,
    ]
    yield Parser("batch", _batch, (ValueError,), batches)
    yield Parser("batch-end", _batch_end, (ValueError,), batches)
    yield Parser("epochs", _epochs, (MetadataLogError,), batches)
    yield Parser("committed-epochs", _committed_epochs, (MetadataLogError,), batches)
    yield Parser("checkpoint", _checkpoint, (MetadataLogError,), batches)
    initial = [write_initial_offsets(OFFSETS), b'\x11{"t":{"0":23}}']
    yield Parser("initial-offsets", _initial_offsets, (MetadataLogError,), initial)
    transactions = (
        Transaction(f"pyspark-kafka-{_QUERY_ID}-0-0", 1, 2),
        Transaction("other", 2**40, 7),
    )
    entries = [SinkLogEntry(7, state, transactions[:1]).to_bytes() for state in BatchState]
    entries.append(SinkLogEntry(8, BatchState.PREPARED, transactions).to_bytes())
    yield Parser("sink-entry", _sink_entry, (ValueError,), entries)
    yield Parser("sink", _sink, (MetadataLogError, TransactionLostError), entries)
    query_id = [f'{{"id":"{_QUERY_ID}"}}'.encode()]
    yield Parser("query-id", _query_id, (MetadataLogError,), query_id)
    yield Parser("log-names", _listed_log, (MetadataLogError,), [b"0\n1\n12\n.0.crc\n.tmp\n007"])
    digest = "0" * 32
    yield Parser("names", _names, (), [f"{digest}.message.7".encode(), b"beat.7", b"12"])
    yield Parser("signed", _signed, (), [bytes(32) + b"payload"])
    messages = [write_message(message).encode() for message in MESSAGES]
    yield Parser("message", _message, (ValueError,), messages)
    commands = [write_command(command).encode() for command in COMMANDS]
    yield Parser("command", _command, (ValueError,), commands)
    yield Parser("offsets", _offsets_text, (ValueError,), [OFFSETS.to_json().encode()])
    text = b"Traceback\npyspark_kafka.domain.errors.OptionsError: [KAFKA_X] text\n\nmore"
    yield Parser("failure-text", _failure_text, (), [text])


PARSERS: Final = tuple(_all())
