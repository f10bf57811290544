"""The parsers of what brokers answer, held against any bytes."""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kafka import errors as kafka_errors
from kafka.protocol import consumer, metadata, producer
from kafka.protocol.admin import transactions as admin_transactions
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.consumer import FetchResponse as TheirFetchResponse
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorResponse
from kafka.protocol.producer import ProduceResponse

from pyspark_kafka.adapters.kafka_python import wire
from pyspark_kafka.adapters.kafka_python.connections import (
    EncodedRequest,
    FetchConnection,
    FrameTooLargeError,
    Opened,
    ProduceConnection,
    ReceiveBuffer,
    RequestConnection,
)
from pyspark_kafka.adapters.kafka_python.failures import ErrorMapper
from pyspark_kafka.adapters.kafka_python.offset_fetcher import KafkaPythonOffsetFetcher
from pyspark_kafka.adapters.kafka_python.responses import check_response, reading
from pyspark_kafka.adapters.kafka_python.transactions import (
    TransactionRequests,
    add_offsets_request,
    add_partitions_request,
    commit_offsets_request,
    end_request,
)
from pyspark_kafka.adapters.kafka_python.wire import (
    FetchPosition,
    FetchResponse,
    FetchSettings,
    ProduceSettings,
    responses_of,
)
from pyspark_kafka.domain.cluster.cluster_view import ClusterView, Leadership, TopicView
from pyspark_kafka.domain.cluster.topics import Broker
from pyspark_kafka.domain.errors import PysparkKafkaError
from pyspark_kafka.domain.options.option import QueryKind
from pyspark_kafka.domain.options.source import parse_source_options
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.subscription import Subscribe, SubscribePattern
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.transaction import Transaction, TransactionState

from .parsers import Parser
from .valid_responses import CORRELATION_ID, TOPIC, TOPIC_ID, framed, valid_response, variants

PARTITION: Final = TopicPartition(TOPIC, 0)
TRANSACTION: Final = Transaction("an id", 5, 1)
BROKERS: Final = {"2.8": BrokerVersionData((2, 8)), "4.0": BrokerVersionData((4, 0))}
ERRORS: Final = ErrorMapper("broker:9092", 0)
_OPTIONS: Final = parse_source_options(
    {"kafka.bootstrap.servers": "broker:9092", "subscribe": TOPIC}, QueryKind.STREAM
)
_FETCHES: Final = FetchSettings("c", "", 0, 1, 1_000, 1_000, 500)
_WRITES: Final = ProduceSettings("c", -1, 1_000, needs_zstd=False)


def _fetched(version: int, content: bytes) -> None:
    response = FetchResponse.of(memoryview(content), version, CORRELATION_ID, {TOPIC_ID: TOPIC})
    assert len(response.of_partition(PARTITION).records) <= len(content)


def _produced(version: int, content: bytes) -> None:
    for partition, failure in responses_of(memoryview(content), version, CORRELATION_ID).items():
        assert str(partition)
        assert failure is None or isinstance(failure.reason, str)


def _fetch_parsers() -> Iterator[Parser]:
    for version in (*range(wire.MIN_FETCH_VERSION, wire.MAX_FETCH_VERSION + 1), 13):
        yield Parser(
            f"fetch-v{version}",
            partial(_fetched, version),
            (kafka_errors.KafkaProtocolError,),
            variants(TheirFetchResponse, version, topic=TOPIC, topic_id=TOPIC_ID),
        )
    for version in range(wire.MIN_PRODUCE_VERSION, wire.MAX_PRODUCE_VERSION + 1):
        yield Parser(
            f"produce-v{version}",
            partial(_produced, version),
            (kafka_errors.KafkaProtocolError,),
            variants(ProduceResponse, version),
        )


def _opened(received: bytes) -> tuple[Opened, socket.socket]:
    """Return a connection, and the broker's end, which has sent this."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.sendall(received)
    theirs.shutdown(socket.SHUT_WR)
    return Opened(ours, "broker 0 at broker:9092", BROKERS["4.0"]), theirs


def _receive_fetched(content: bytes) -> None:
    opened, theirs = _opened(content)
    with theirs, closing(FetchConnection(opened, _FETCHES, 1_000)) as connection:
        connection.send({PARTITION: FetchPosition(0)})
        connection.receive(ReceiveBuffer())


def _receive_produced(content: bytes) -> None:
    opened, theirs = _opened(content)
    with theirs, closing(ProduceConnection(opened, _WRITES, 1_000)) as connection:
        connection.send({PARTITION: b"records"}, None)
        connection.receive()


def _receive(request: Any, content: bytes) -> None:
    opened, theirs = _opened(content)
    with theirs, closing(RequestConnection(opened, "c", 1_000)) as connection:
        connection.send(EncodedRequest(request))
        check_response(connection.receive())


def _connection_parsers() -> Iterator[Parser]:
    errors = (OSError, kafka_errors.KafkaProtocolError, FrameTooLargeError)
    fetched = valid_response(TheirFetchResponse, 11, topic=TOPIC)
    yield Parser("fetch-connection", _receive_fetched, errors, [framed(fetched)])
    produced = valid_response(ProduceResponse, 8)
    yield Parser("produce-connection", _receive_produced, errors, [framed(produced)])
    for request, response in (
        (add_partitions_request(TRANSACTION, [PARTITION]), producer.AddPartitionsToTxnResponse),
        (add_offsets_request(TRANSACTION, "g"), producer.AddOffsetsToTxnResponse),
        (commit_offsets_request(TRANSACTION, "g", PARTITION, 7), producer.TxnOffsetCommitResponse),
        (end_request(TRANSACTION, commit=True), producer.EndTxnResponse),
    ):
        version = BROKERS["4.0"].api_version(request)
        yield Parser(
            f"coordinator-{request.name.removesuffix('Request')}",
            partial(_receive, request),
            (OSError, kafka_errors.KafkaError),
            map(framed, variants(response, version)),
        )


def decoded(request: Any, content: bytes, broker: BrokerVersionData) -> Any:
    """Return a response as connections read it from a frame."""
    encoded, version = EncodedRequest(request), broker.api_version(request)
    encoded.encode(version, CORRELATION_ID, "c")
    with reading():
        return encoded.decode(version, memoryview(content)[4:])


class Answering:
    """Stands for ``ClusterMetadata`` and for ``BrokerRequests``: answers one request.

    Questions for coordinators are answered correctly, unless they are all that is asked for.
    """

    def __init__(self, content: bytes, broker: BrokerVersionData, *, finds: bool = True) -> None:
        self._content = content
        self._finds = finds
        self._broker = broker
        self.view = ClusterView({0: Broker(0, "broker", 9092)})

    def nodes(self) -> list[int]:
        return [0]

    def refresh(self) -> None:
        """Do nothing."""

    def ask_any(
        self, request: Any, check: Callable[[Any], object] = lambda _: None
    ) -> tuple[tuple[str, int], Any]:
        answer = self.send(request)
        check(answer)
        return ("broker", 9092), answer

    def send_all(self, requests: Mapping[int, Any]) -> dict[int, Any]:
        return {node: self.send(request) for node, request in requests.items()}

    def send(self, request: Any, _node: int | None = None) -> Any:
        if self._finds and isinstance(request, metadata.FindCoordinatorRequest):
            version = self._broker.api_version(request)
            found = valid_response(FindCoordinatorResponse, version, key="g")
            return decoded(request, found, self._broker)
        return decoded(request, self._content, self._broker)


def _ask(
    call: Callable[[TransactionRequests], object],
    broker: BrokerVersionData,
    finds: bool,
    content: bytes,
) -> None:
    requests = TransactionRequests(Answering(content, broker, finds=finds), ERRORS)  # type: ignore[arg-type]
    with ERRORS.mapped_errors("a request"):
        call(requests)


def _committed(requests: TransactionRequests) -> None:
    found = requests.committed_offsets("g", [PARTITION])
    PartitionOffsets({each: committed.offset for each, committed in found.items()})


def _began(requests: TransactionRequests) -> None:
    begun = requests.begin("an id", 1_000)
    assert begun.transactional_id == "an id"


def _transaction_parsers() -> Iterator[Parser]:
    asked: Mapping[str, tuple[Callable[[TransactionRequests], object], Any, int]] = {
        "new-producer": (lambda all_: all_.new_producer(), producer.InitProducerIdResponse, 4),
        "begin": (_began, producer.InitProducerIdResponse, 4),
        "add-partitions": (
            lambda all_: all_.add_partitions(TRANSACTION, [PARTITION]),
            producer.AddPartitionsToTxnResponse,
            3,
        ),
        "end": (lambda all_: all_.end(TRANSACTION, commit=True), producer.EndTxnResponse, 3),
        "describe": (
            lambda all_: all_.describe([TRANSACTION.transactional_id]),
            admin_transactions.DescribeTransactionsResponse,
            0,
        ),
        "committed": (_committed, consumer.OffsetFetchResponse, 7),
        "open-transactions": (
            lambda all_: all_.find("without one to describe", TransactionState.ONGOING),
            admin_transactions.ListTransactionsResponse,
            1,
        ),
    }
    for name, (call, response, version) in asked.items():
        yield Parser(
            f"transactions-{name}",
            partial(_ask, call, BROKERS["4.0"], True),
            (PysparkKafkaError,),
            variants(response, version),
        )
    yield Parser(
        "transactions-coordinator",
        partial(
            _ask,
            lambda all_: all_.coordinator("an id", CoordinatorType.TRANSACTION),
            BROKERS["4.0"],
            False,
        ),
        (PysparkKafkaError,),
        variants(FindCoordinatorResponse, 3),
    )


def _fetch_offsets(
    call: Callable[[KafkaPythonOffsetFetcher], object], broker: BrokerVersionData, content: bytes
) -> None:
    fetcher = KafkaPythonOffsetFetcher(_OPTIONS)
    fetcher._errors = fetcher._groups._errors = ERRORS
    answering = Answering(content, broker)
    leaders = TopicView({PARTITION.partition: Leadership(0)})
    fetcher._metadata.learn(replace(answering.view, topics={PARTITION.topic: leaders}))
    fetcher._metadata.ask_any = answering.ask_any  # type: ignore[method-assign]
    fetcher._metadata.send_all = answering.send_all  # type: ignore[method-assign]
    call(fetcher)


def _offset_parsers() -> Iterator[Parser]:
    calls: Mapping[str, tuple[Callable[[KafkaPythonOffsetFetcher], object], Any, Any]] = {
        "partitions": (
            lambda fetcher: fetcher.partitions(Subscribe((TOPIC,))),
            metadata.MetadataRequest,
            metadata.MetadataResponse,
        ),
        "partitions-by-pattern": (
            lambda fetcher: fetcher.partitions(SubscribePattern(".*")),
            metadata.MetadataRequest,
            metadata.MetadataResponse,
        ),
        "committed": (
            lambda fetcher: fetcher.committed("g", [PARTITION]),
            consumer.OffsetFetchRequest,
            consumer.OffsetFetchResponse,
        ),
        "commit": (
            lambda fetcher: fetcher.commit("g", PartitionOffsets({PARTITION: 7})),
            consumer.OffsetCommitRequest,
            consumer.OffsetCommitResponse,
        ),
        "timestamps": (
            lambda fetcher: fetcher.for_timestamps({PARTITION: 7}),
            consumer.ListOffsetsRequest,
            consumer.ListOffsetsResponse,
        ),
        "latest": (
            lambda fetcher: fetcher.latest([PARTITION]),
            consumer.ListOffsetsRequest,
            consumer.ListOffsetsResponse,
        ),
    }
    for name, (call, request, response) in calls.items():
        for release, broker in BROKERS.items():
            version = min(broker.api_version(request), _MAX_VERSIONS.get(name, 99))
            yield Parser(
                f"offsets-{name}-{release}",
                partial(_fetch_offsets, call, broker),
                (PysparkKafkaError,),
                variants(response, version, group_id="g", topic_id=TOPIC_ID),
            )


_MAX_VERSIONS: Final = {"committed": 7, "commit": 9}

PARSERS: Final = (
    *_fetch_parsers(),
    *_connection_parsers(),
    *_transaction_parsers(),
    *_offset_parsers(),
)
