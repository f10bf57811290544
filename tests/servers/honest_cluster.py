"""The answers of a Kafka cluster with one broker, which keeps its logs in memory.

It holds what this library and its clients ask for, and no more: no groups with members, no
compaction, no replication.
"""

import struct
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, TypeAlias, final
from uuid import UUID, uuid4

import numpy as np
import pyarrow as pa
from kafka import errors as kafka_errors
from kafka.protocol.admin import transactions as listing
from kafka.protocol.consumer import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)

from pyspark_kafka.adapters.kafka_format.batch_headers import index_batches
from pyspark_kafka.adapters.kafka_format.compression import Compressor
from pyspark_kafka.adapters.kafka_format.producer_columns import ProducerColumns
from pyspark_kafka.adapters.kafka_format.record_decoder import FetchedRecords, RecordDecoder
from pyspark_kafka.adapters.kafka_format.record_encoder import RecordEncoder
from pyspark_kafka.domain.options.option import INT64_MAX
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.batch import ProducerIdAndEpoch

_Fields: TypeAlias = dict[str, Any]

NODE: Final = 0
LEADER_EPOCH: Final = 5
MAX_FETCH_BYTES: Final = 1_000_000

_EARLIEST, _LATEST = -2, -1
_NO_TOPIC: Final = "none"
"""The name of a topic whose id is not known."""

TOPICS: Final = (
    *("topics", "topic_data", "responses"),
    *("v3_and_below_topics", "results_by_topic_v3_and_below"),
)
NUMBERS: Final = ("partition_index", "partition", "index")
"""How messages call the list of their topics, and the number of a partition."""

_SEQUENCE_AT: Final = 51
"""Where a batch of format 2 has its producer's epoch and its base sequence, less two bytes."""

APIS: Final = {
    ProduceRequest: (3, 8),
    FetchRequest: (4, 13),
    ListOffsetsRequest: (1, 7),
    MetadataRequest: (0, 12),
    OffsetCommitRequest: (2, 8),
    OffsetFetchRequest: (1, 9),
    FindCoordinatorRequest: (0, 4),
    ApiVersionsRequest: (0, 3),
    InitProducerIdRequest: (0, 4),
    OffsetForLeaderEpochRequest: (2, 4),
    AddPartitionsToTxnRequest: (0, 3),
    AddOffsetsToTxnRequest: (0, 3),
    EndTxnRequest: (0, 3),
    TxnOffsetCommitRequest: (0, 3),
    listing.ListTransactionsRequest: (0, 0),
    listing.DescribeTransactionsRequest: (0, 0),
}
"""The requests that are answered, each with its lowest and highest version."""


def encoded_batch(values: Sequence[bytes], base_offset: int = 0) -> bytes:
    """Return a record batch of format 2, whose first record has an offset."""
    batch = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
    columns = ProducerColumns.of(batch, 1_700_000_000_000)
    encoded = RecordEncoder(Compressor()).encode(
        columns, np.arange(len(values), dtype=np.int64), ProducerIdAndEpoch(), -1
    )
    return at_offset(encoded, base_offset)


def at_offset(batch: bytes, base_offset: int) -> bytes:
    """Return a batch with another base offset, which its checksum does not cover."""
    return struct.pack(">q", base_offset) + batch[8:]


@final
@dataclass(slots=True)
class PartitionLog:
    """The batches of one partition, and the last sequence number of each producer."""

    batches: list[bytes] = field(default_factory=list)
    start: int = 0
    _sequences: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return _last_offset(self.batches[-1]) + 1 if self.batches else 0

    def append(self, batch: bytes) -> int:
        """Append a batch, unless its producer has sent it before; return its base offset.

        :raises OutOfOrderSequenceNumberError: if an earlier batch of its producer is missing.
        """
        [header] = index_batches(memoryview(batch)).batches
        epoch, sequence = struct.unpack_from(">hi", batch, _SEQUENCE_AT)
        producer = header.producer_id, epoch
        if header.producer_id >= 0:
            expected, last_offset = self._sequences.get(producer, (0, -1))
            if sequence + header.records == expected:
                return last_offset
            if sequence != expected:
                raise kafka_errors.OutOfOrderSequenceNumberError
        base_offset = self.end
        self._sequences[producer] = sequence + header.records, base_offset
        self.batches.append(at_offset(batch, base_offset))
        return base_offset

    def read(self, offset: int) -> bytes:
        """Return the batches from the one on that has an offset."""
        wanted = [batch for batch in self.batches if _last_offset(batch) >= offset]
        taken = wanted[:1]
        for batch in wanted[1:]:
            if sum(map(len, taken)) + len(batch) > MAX_FETCH_BYTES:
                break
            taken.append(batch)
        return b"".join(taken)


def _last_offset(batch: bytes) -> int:
    return struct.unpack_from(">q", batch)[0] + struct.unpack_from(">i", batch, 23)[0]


@final
class HonestCluster:
    """Answers requests with kafka-python's responses; ``host`` and ``port`` are its address."""

    def __init__(self, topics: Iterable[str], partitions: int, host: str, port: int) -> None:
        self._host, self._port = host, port
        self.topic_ids = {name: UUID(int=number) for number, name in enumerate(topics, 1)}
        self.logs = {
            TopicPartition(topic, number): PartitionLog()
            for topic in self.topic_ids
            for number in range(partitions)
        }
        self.committed: dict[str, dict[TopicPartition, int]] = defaultdict(dict)
        self.ended: list[tuple[str, bool]] = []
        """The transactional ids that were ended, each with whether it was committed."""

        self._epochs: dict[str | None, int] = {}
        self._answers: dict[Any, Callable[[Any, int], _Fields]] = {
            MetadataRequest: self._metadata,
            OffsetFetchRequest: self._committed,
            FindCoordinatorRequest: self._coordinator,
            ApiVersionsRequest: self._versions,
            InitProducerIdRequest: self._producer_id,
            EndTxnRequest: self._end,
        }
        self._answers_of_partitions: dict[Any, Callable[[Any, TopicPartition, Any], _Fields]] = {
            ProduceRequest: self._produce,
            FetchRequest: self._fetch,
            ListOffsetsRequest: self._list_offsets,
            OffsetCommitRequest: self._commit,
            OffsetForLeaderEpochRequest: self._epoch_end,
            AddPartitionsToTxnRequest: lambda *_: {},
            TxnOffsetCommitRequest: self._commit,
        }

    def answer(self, request: Any, version: int) -> Any:
        kind = type(request)
        response = getattr(sys.modules[kind.__module__], kind.name.replace("Request", "Response"))
        if answer := self._answers_of_partitions.get(kind):
            fields = self._by_partition(request, response, answer)
        else:
            fields = self._answers.get(kind, lambda *_: {})(request, version)
        return _made(response, **fields)

    def _by_partition(self, request: Any, response: Any, answer: Any) -> _Fields:
        """Return the topics of a request, each with the answers for its partitions."""
        topics = field_of(response, TOPICS)
        *names, partitions = response.fields[topics].fields
        number = field_of(response.fields[topics].fields[partitions], NUMBERS)
        by_id: dict[Any, str] = {topic_id: name for name, topic_id in self.topic_ids.items()}
        answered = []
        for asked in getattr(request, field_of(request, TOPICS)):
            topic_id = getattr(asked, "topic_id", None)
            name = by_id.get(topic_id) or getattr(asked, names[0]) or _NO_TOPIC
            answers = []
            for one in getattr(asked, [*asked._struct.fields][-1]):
                index = one if isinstance(one, int) else getattr(one, field_of(one, NUMBERS))
                found = answer(request, TopicPartition(name, index), one)
                answers.append({number: index, **found})
            told = {each: getattr(asked, each) for each in names if hasattr(asked, each)}
            answered.append({**told, partitions: answers})
        return {topics: answered}

    def append(self, partition: TopicPartition, values: Sequence[bytes], per_batch: int) -> None:
        log = self.logs[partition]
        for start in range(0, len(values), per_batch):
            log.append(encoded_batch(values[start : start + per_batch]))

    def delete(self, topic: str) -> None:
        self.topic_ids = {name: each for name, each in self.topic_ids.items() if name != topic}
        self.logs = {each: log for each, log in self.logs.items() if each.topic != topic}

    def recreate(self, topic: str) -> None:
        partitions = [each for each in self.logs if each.topic == topic]
        self.delete(topic)
        self.topic_ids[topic] = uuid4()
        self.logs.update((each, PartitionLog()) for each in partitions)

    def values(self, partition: TopicPartition) -> list[bytes]:
        log = b"".join(self.logs[partition].batches)
        decoder = RecordDecoder(partition, ALL_COLUMNS)
        batches = decoder.decode(FetchedRecords.of(log), 0, INT64_MAX)
        return [row["value"] for batch in batches for row in batch.to_pylist()]

    def _versions(self, _: Any, version: int) -> _Fields:
        is_known = version <= APIS[ApiVersionsRequest][1]
        return {
            "error_code": 0 if is_known else kafka_errors.UnsupportedVersionError.errno,
            "api_keys": [
                {"api_key": api.API_KEY, "min_version": lowest, "max_version": highest}
                for api, (lowest, highest) in APIS.items()
            ],
        }

    def _metadata(self, request: Any, version: int) -> _Fields:
        wanted = [topic.name for topic in request.topics or ()]
        # An empty list is all topics in version 0, and none later.
        is_all = request.topics is None or not (wanted or version)
        return {
            "brokers": [{"node_id": NODE, "host": self._host, "port": self._port, "rack": None}],
            "cluster_id": "a cluster",
            "controller_id": NODE,
            "topics": [self._described(name) for name in (self.topic_ids if is_all else wanted)],
        }

    def _described(self, name: str) -> _Fields:
        unknown = kafka_errors.UnknownTopicOrPartitionError.errno
        places = {"leader_id": NODE, "replica_nodes": [NODE], "isr_nodes": [NODE]}
        return {
            "error_code": 0 if name in self.topic_ids else unknown,
            "name": name,
            "topic_id": self.topic_ids.get(name, UUID(int=0)),
            "partitions": [
                {**places, "partition_index": each.partition, "leader_epoch": LEADER_EPOCH}
                for each in self.logs
                if each.topic == name
            ],
        }

    def _fetch(self, _: Any, partition: TopicPartition, wanted: Any) -> _Fields:
        log = self.logs.get(partition, PartitionLog())
        is_held = log.start <= wanted.fetch_offset <= log.end
        error: Any = kafka_errors.NoError if is_held else kafka_errors.OffsetOutOfRangeError
        if partition not in self.logs:
            is_held, error = False, kafka_errors.UnknownTopicIdError
        return {
            "error_code": error.errno,
            "high_watermark": log.end,
            "last_stable_offset": log.end,
            "log_start_offset": log.start,
            "records": log.read(wanted.fetch_offset) if is_held else b"",
        }

    def _list_offsets(self, _: Any, partition: TopicPartition, wanted: Any) -> _Fields:
        log = self.logs[partition]
        # Any other time is before the first record.
        offset = log.end if wanted.timestamp == _LATEST else log.start
        return {"offset": offset, "leader_epoch": LEADER_EPOCH}

    def _epoch_end(self, _: Any, partition: TopicPartition, __: Any) -> _Fields:
        return {"leader_epoch": LEADER_EPOCH, "end_offset": self.logs[partition].end}

    def _produce(self, _: Any, partition: TopicPartition, sent: Any) -> _Fields:
        answer = {"log_start_offset": 0, "error_message": None}
        try:
            return answer | {"base_offset": self.logs[partition].append(bytes(sent.records))}
        except kafka_errors.OutOfOrderSequenceNumberError as error:
            return answer | {"base_offset": -1, "error_code": error.errno}

    def _coordinator(self, request: Any, version: int) -> _Fields:
        place = {"node_id": NODE, "host": self._host, "port": self._port, "error_message": None}
        if version <= 3:
            return place
        return {"coordinators": [{"key": key, **place} for key in request.coordinator_keys]}

    def _producer_id(self, request: Any, _: int) -> _Fields:
        epoch = self._epochs.get(request.transactional_id, -1) + 1
        self._epochs[request.transactional_id] = epoch
        return {"producer_id": 1_000, "producer_epoch": epoch}

    def _end(self, request: Any, _: int) -> _Fields:
        self.ended.append((request.transactional_id, request.committed))
        return {}

    def _commit(self, request: Any, partition: TopicPartition, wanted: Any) -> _Fields:
        self.committed[request.group_id][partition] = wanted.committed_offset
        return {}

    def _committed(self, request: Any, version: int) -> _Fields:
        if version < 8:
            return {"topics": self._offsets_of(request)}
        groups = [
            {"group_id": each.group_id, "topics": self._offsets_of(each)} for each in request.groups
        ]
        return {"groups": groups}

    def _offsets_of(self, wanted: Any) -> list[_Fields]:
        offsets = self.committed[wanted.group_id]
        asked = [
            TopicPartition(each.name, number)
            for each in wanted.topics or ()
            for number in each.partition_indexes
        ] or sorted(offsets)
        return [
            {
                "name": name,
                "partitions": [
                    {"partition_index": each.partition, "committed_offset": offsets.get(each, -1)}
                    for each in partitions
                ],
            }
            for name, partitions in groupby(asked, lambda each: each.topic)
        ]


def field_of(message: Any, names: Iterable[str]) -> str:
    """Return the first of some names that a message, its class or a field of it has."""
    fields = message.fields if hasattr(message, "fields") else message._struct.fields
    return next((name for name in names if name in fields), "")


def _made(kind: Any, **fields: Any) -> Any:
    """Return a response with fields, in lists of dictionaries, too; the rest has its default."""
    for name, value in fields.items():
        field = kind.fields[name]
        if field.is_struct_array():
            fields[name] = [_made(field.data_class, **each) for each in value]
    return kind(**fields)
