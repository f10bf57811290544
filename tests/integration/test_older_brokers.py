"""Brokers of Kafka 2.4 to 2.6: they compare no leader epochs in fetches, so that readers ask."""

import struct
from contextlib import closing
from typing import Any, Final

import pytest
from kafka import errors as kafka_errors

from pyspark_kafka.domain.reading.errors import LogTruncatedError
from pyspark_kafka.domain.reading.ranges import OffsetRange
from pyspark_kafka.domain.reading.records import ALL_COLUMNS
from pyspark_kafka.testing import Record
from tests.servers import lies
from tests.servers.honest_cluster import APIS, NODE, PartitionLog
from tests.servers.hostile_broker import Lie, hostile_broker

from .hostile_uses import INPUT, HostileWorld

MAX_VERSIONS: Final = {
    "Produce": 8,
    "Fetch": 11,
    "ListOffsets": 5,
    "Metadata": 9,
    "OffsetCommit": 8,
    "OffsetFetch": 6,
    "FindCoordinator": 3,
    "ApiVersions": 3,
    "InitProducerId": 2,
    "OffsetForLeaderEpoch": 3,
    "AddPartitionsToTxn": 1,
    "AddOffsetsToTxn": 1,
    "EndTxn": 1,
    "TxnOffsetCommit": 2,
}
"""Of Kafka 2.4."""

READ, END = 20, 30
SAME: Final = 10
EPOCH, NEXT_EPOCH = 5, 7
NOT_LEADER: Final = kafka_errors.NotLeaderForPartitionError.errno

_EPOCH_AT: Final = 12
"""Where a batch has its leader's epoch, which its checksum does not cover."""


def announce(response: Any) -> None:
    """Leave APIs and versions out of a response that Kafka 2.4 does not have."""
    by_key = {api.API_KEY: api.name.removesuffix("Request") for api in APIS}
    kept = [one for one in response.api_keys if by_key[one.api_key] in MAX_VERSIONS]
    for one in kept:
        one.max_version = MAX_VERSIONS[by_key[one.api_key]]
    response.api_keys = kept


def set_epochs(log: PartitionLog) -> None:
    log.batches[:] = [
        batch[:_EPOCH_AT] + struct.pack(">i", EPOCH) + batch[_EPOCH_AT + 4 :]
        for batch in log.batches
    ]


class Cluster:
    """Says where epochs end. Once it ``moved``, another leader's log ends earlier."""

    def __init__(self) -> None:
        self.moved = False
        self.is_known = False
        self.versions: dict[str, set[int]] = {"Fetch": set(), "OffsetForLeaderEpoch": set()}
        self.epochs: set[tuple[int, int]] = set()

    def lies(self) -> tuple[Lie, ...]:
        return (
            lies.changed("ApiVersions", announce),
            Lie("Metadata", self._metadata),
            Lie("Fetch", self._fetch),
            Lie("OffsetForLeaderEpoch", self._epoch_ends),
        )

    def _metadata(self, _: Any, __: Any) -> None:
        self.is_known = self.moved

    def _fetch(self, request: Any, response: Any) -> None:
        self.versions["Fetch"].add(request.API_VERSION)
        if self.moved and not self.is_known:
            [[answer]] = [topic.partitions for topic in response.responses]
            answer.error_code, answer.records = NOT_LEADER, b""

    def _epoch_ends(self, request: Any, response: Any) -> None:
        self.versions["OffsetForLeaderEpoch"].add(request.API_VERSION)
        [[asked]] = [topic.partitions for topic in request.topics]
        [[answer]] = [topic.partitions for topic in response.topics]
        self.epochs.add((asked.leader_epoch, asked.current_leader_epoch))
        answer.leader_epoch, answer.end_offset = EPOCH, SAME


@pytest.mark.parametrize(("client", "version"), [("kafka-python", 3), ("confluent", 2)])
def test_a_truncated_log_is_told(client, version):
    """A new leader is asked by a version that it has; the error has the offset where it differs."""
    cluster = Cluster()
    with hostile_broker(*cluster.lies()) as broker, closing(HostileWorld(client, broker)) as world:
        world.produce(INPUT, [Record(b"v")] * READ)
        set_epochs(broker.cluster.logs[INPUT])
        batches = world.container().record_reader().read(OffsetRange(INPUT, 0, END), ALL_COLUMNS)
        read = 0
        while read < READ:
            read += next(batches).num_rows
        cluster.moved = True
        broker.cluster.leader_of = lambda _: (NODE, NEXT_EPOCH)
        with pytest.raises(LogTruncatedError) as caught:
            list(batches)
    assert (caught.value.offset, caught.value.diverges_at) == (READ, SAME)
    assert cluster.epochs == {(EPOCH, NEXT_EPOCH)}
    assert cluster.versions == {"Fetch": {11}, "OffsetForLeaderEpoch": {version}}
