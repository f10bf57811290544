"""Answers that lie: each ends in an error of this library, or is survived."""

import resource
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from signal import SIGABRT, SIGSEGV
from typing import Final, TypeAlias, final

import pytest

from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    InvalidResponseError,
    KafkaRequestError,
    PysparkKafkaError,
    UnknownTopicError,
)
from pyspark_kafka.domain.reading.errors import CorruptBatchError, FetchTimeoutError
from pyspark_kafka.domain.writing.errors import RecordDeliveryError
from tests.servers import lies
from tests.servers.honest_cluster import encoded_batch
from tests.servers.hostile_broker import Lie, hostile_broker
from tests.servers.lies import FRAMES, of_api
from tests.slowness import bound_s
from tests.unit.adapters.kafka_format.batches import SNAPPY, Batch

from .hostile_uses import (
    HONEST,
    IMPATIENT,
    INPUT,
    PATIENT,
    VALUES,
    HostileWorld,
    Use,
    commit,
    committed,
    list_offsets,
    pass_on,
    read,
    stream,
    transact,
    write,
)

PYTHON: Final = ("kafka-python",)
CONFLUENT: Final = ("confluent",)
BOTH: Final = (*PYTHON, *CONFLUENT)
TRANSACTIONAL: Final[tuple[Use, ...]] = (transact, pass_on)
"""Uses that `confluent` refuses."""

ROOT: Final = Path(__file__).parents[2]
GIB: Final = 1024**3

BOUND_S: Final = bound_s(10)
"""How long a lie may keep a use that has a second, on a machine that is busy."""

ATTEMPTS: Final = 3
"""A machine may pause for as long as an impatient client waits, before it is lied to."""

BY_USE: Final[dict[Use, tuple[str, ...]]] = {
    read: ("ApiVersions", "Metadata", "Fetch"),
    stream: ("Fetch",),
    write: ("InitProducerId", "Produce"),
    transact: ("FindCoordinator", "InitProducerId", "EndTxn"),
    pass_on: ("OffsetFetch", "AddPartitionsToTxn", "AddOffsetsToTxn", "Produce", "TxnOffsetCommit"),
    list_offsets: ("Metadata", "ListOffsets"),
    commit: ("FindCoordinator", "OffsetCommit"),
    committed: ("OffsetFetch",),
}
"""The requests that each use needs."""

BY_CLIENT: Final = {"kafka-python": ("Fetch", "Produce", "TxnOffsetCommit"), "confluent": ()}
"""The responses that our own code parses."""

SOME_FRAMES: Final = {
    "kafka-python": ("answers another request", "has negative sizes", "is empty"),
    "confluent": ("is reset",),
}


_Expected: TypeAlias = type[PysparkKafkaError] | tuple[type[PysparkKafkaError], ...]


@final
@dataclass(frozen=True, slots=True)
class Told:
    """A lie, the affected clients, and the expected error: ``None`` for the honest result."""

    use: Use
    lie: Lie
    error: _Expected | None = None
    text: str = ""
    clients: tuple[str, ...] = BOTH


def batch(start: int, end: int) -> bytes:
    return encoded_batch([b"%d" % number for number in range(start, end)], start)


def records(content: bytes) -> Lie:
    return lies.with_partition_fields("Fetch", records=content)


_NO_ANSWER: Final[_Expected] = (FetchTimeoutError, InvalidResponseError)
"""Two limits of one length: of records, and of a broker's faults. Either may pass first."""

FETCHES: Final = {
    "a fetch that leaves its topic out times out": Told(
        read, lies.without_topics("Fetch"), _NO_ANSWER, "t-0"
    ),
    "a fetch of another topic's records times out": Told(
        read, lies.of_another_topic("Fetch"), _NO_ANSWER, "t-0"
    ),
    "a fetch of another partition's records times out": Told(
        read, lies.of_another_partition("Fetch"), _NO_ANSWER, "t-0", PYTHON
    ),
    "a fetch without records times out": Told(read, records(b""), FetchTimeoutError, "offset 0 "),
    "records below the position are not repeated": Told(
        read, records(batch(0, 10)), FetchTimeoutError, "offset 10 ", PYTHON
    ),
    "records below the position are not repeated by librdkafka": Told(
        read, records(batch(0, 10)), KafkaRequestError, "t-0: Message at offset 10", CONFLUENT
    ),
    "records behind the range are not read": Told(read, records(batch(0, 20) + batch(20, 50))),
    "offsets that go back are corruption": Told(
        read,
        records(batch(0, 10) + batch(10, 20) + batch(0, 10)),
        CorruptBatchError,
        "t-0 is corrupt: the offsets of its records do not ascend",
        PYTHON,
    ),
    "batches that overlap are corruption": Told(
        stream,
        records(batch(0, 20) + batch(10, 30)),
        CorruptBatchError,
        "t-0 is corrupt: the offsets of its records do not ascend",
        PYTHON,
    ),
    "records that were sent already are not repeated": Told(
        read,
        records(batch(0, 10) + batch(10, 20) + batch(0, 10) + batch(10, 20) + batch(20, 30)),
        clients=CONFLUENT,
    ),
    "a negative high watermark is not used": Told(
        read, lies.with_partition_fields("Fetch", high_watermark=-1, last_stable_offset=-1)
    ),
    "an error that there is not is retried until the time-out": Told(
        read, lies.with_unknown_error("Fetch"), FetchTimeoutError, clients=PYTHON
    ),
    "an error that there is not is shown": Told(
        stream,
        lies.with_unknown_error("Fetch"),
        KafkaRequestError,
        "fetch from t-0: .*32000",
        CONFLUENT,
    ),
    "an offset that is out of range for a broker that has it times out": Told(
        read, lies.with_partition_fields("Fetch", error_code=1), FetchTimeoutError
    ),
    "a replica that there is not is left for the leader": Told(
        read,
        lies.with_partition_fields("Fetch", preferred_read_replica=lies.NO_NODE),
        clients=PYTHON,
    ),
    "a negative throttle is no throttle": Told(
        stream, lies.with_fields("Fetch", throttle_time_ms=-(2**31))
    ),
}

BROKEN: Final = {
    **{
        f"a fetch's response that {name} again and again is named with its broker": Told(
            stream, of_api(FRAMES[name], "Fetch"), InvalidResponseError, "broker 0 at 127", PYTHON
        )
        for name in ("is cut off", "answers another request", "announces a negative size")
    },
    "a stream whose fetches leave its topic out ends": Told(
        stream,
        lies.without_topics("Fetch"),
        InvalidResponseError,
        "broker 0 at 127.* leaves out t-0",
        PYTHON,
    ),
    "a response that cannot be read is named with its broker": Told(
        transact,
        of_api(FRAMES["has negative sizes"], "FindCoordinator"),
        InvalidResponseError,
        "begin a transaction .*: 127",
        PYTHON,
    ),
    "metadata that cannot be read are none": Told(
        list_offsets, of_api(FRAMES["is empty"], "Metadata"), BrokerUnreachableError, clients=PYTHON
    ),
    "a commit's response that cannot be read is invalid": Told(
        commit, of_api(FRAMES["is cut off"], "OffsetCommit"), InvalidResponseError, "commit offsets"
    ),
    "a group's offset that cannot be read is no offset": Told(
        committed,
        of_api(FRAMES["is cut off"], "OffsetFetch"),
        InvalidResponseError,
        "committed offsets",
    ),
}

METADATA: Final = {
    "a leader that there is not cannot be asked": Told(
        list_offsets,
        lies.with_partition_fields("Metadata", leader_id=lies.NO_NODE),
        KafkaRequestError,
        "request for offsets",
    ),
    "a cluster without brokers cannot be reached": Told(
        list_offsets, lies.with_fields("Metadata", brokers=[]), BrokerUnreachableError
    ),
    **{
        f"a broker at {place or 'no host'} cannot be reached": Told(
            list_offsets,
            lies.with_broker_fields(**({"host": place} if isinstance(place, str) else place)),
            BrokerUnreachableError,
        )
        for place in ("", "a..b", {"port": 0}, {"port": 70_000}, {"port": -1})
    },
    "brokers that are null are none": Told(
        list_offsets,
        lies.with_fields("Metadata", brokers=None),
        BrokerUnreachableError,
        clients=PYTHON,
    ),
    "topics that are null are none": Told(
        list_offsets,
        lies.with_fields("Metadata", topics=None),
        BrokerUnreachableError,
        clients=PYTHON,
    ),
    "a topic that is left out is not taken for a deleted one": Told(
        list_offsets,
        lies.without_topics("Metadata"),
        InvalidResponseError,
        "request for metadata .* leaves out t",
        PYTHON,
    ),
    "another topic is not taken for the one asked for": Told(
        list_offsets,
        lies.of_another_topic("Metadata"),
        InvalidResponseError,
        "request for metadata .* leaves out t",
        PYTHON,
    ),
    "a topic without partitions is none": Told(
        list_offsets,
        lies.without_partitions("Metadata"),
        InvalidResponseError,
        r"topic 't' has the partitions \[\]",
        PYTHON,
    ),
    "a negative partition is none": Told(
        list_offsets, lies.of_another_partition("Metadata", -5), InvalidResponseError, "-5"
    ),
    "partitions that are described twice are the same": Told(
        list_offsets, lies.with_partitions_twice("Metadata")
    ),
    "leader epochs that go back do not keep records back": Told(
        read, lies.with_partition_fields("Metadata", leader_epoch=-9), clients=PYTHON
    ),
    "a writer does not find a topic that is left out": Told(
        write, lies.without_topics("Metadata"), UnknownTopicError, "'t' does not exist", PYTHON
    ),
    "a writer does not find a leader that there is not": Told(
        write,
        lies.with_partition_fields("Metadata", leader_id=lies.NO_NODE),
        RecordDeliveryError,
        "t-1 was not delivered",
    ),
}

OFFSETS: Final = {
    **{
        f"an offset of {offset} is none to {' and '.join(clients)}": Told(
            list_offsets,
            lies.with_partition_fields("ListOffsets", offset=offset),
            error,
            text,
            clients,
        )
        for offset, error, text, clients in (
            (-1, InvalidResponseError, "the offset of t-0 is -1", BOTH),
            (-2, InvalidResponseError, "the offset of t-0 is -2", PYTHON),
            (-5, InvalidResponseError, "the offset of t-0 is -5", PYTHON),
            # So librdkafka reports that there is no leader.
            (-5, PysparkKafkaError, "", CONFLUENT),
        )
    },
    "a partition whose offset is left out is not taken for a deleted one": Told(
        list_offsets,
        lies.without_topics("ListOffsets"),
        InvalidResponseError,
        "leaves out t-0",
        PYTHON,
    ),
    "a partition whose offset is left out is asked for again until the time-out": Told(
        list_offsets, lies.without_topics("ListOffsets"), PysparkKafkaError, clients=CONFLUENT
    ),
    "another partition's offset is not taken": Told(
        list_offsets, lies.of_another_partition("ListOffsets"), PysparkKafkaError
    ),
    "an error of offsets that there is not is shown": Told(
        list_offsets, lies.with_unknown_error("ListOffsets"), KafkaRequestError, "32000"
    ),
    "a group's offset that is left out is not taken for none": Told(
        committed,
        lies.without_topics("OffsetFetch"),
        InvalidResponseError,
        "committed offsets .* leaves out t-0",
        PYTHON,
    ),
    "another topic's committed offset is not taken": Told(
        committed,
        lies.of_another_topic("OffsetFetch"),
        InvalidResponseError,
        "committed offsets .* leaves out t-0",
        PYTHON,
    ),
    "a committed offset of -7 is not taken for none": Told(
        committed,
        lies.with_partition_fields("OffsetFetch", committed_offset=-7),
        InvalidResponseError,
        "the offset of t-0 is -7",
    ),
    "a commit that is not acknowledged is none": Told(
        commit,
        lies.without_topics("OffsetCommit"),
        InvalidResponseError,
        "commit offsets .* leaves out t-0",
        PYTHON,
    ),
    "another partition's commit is none": Told(
        commit,
        lies.of_another_partition("OffsetCommit"),
        InvalidResponseError,
        "commit offsets .* leaves out t-0",
        PYTHON,
    ),
    "a coordinator that is never available is waited for until the time-out": Told(
        commit, lies.without_coordinator(15), KafkaRequestError, clients=PYTHON
    ),
}

WRITES: Final = {
    "records whose partition is left out are not delivered": Told(
        write, lies.without_topics("Produce"), RecordDeliveryError, "t-1 was not delivered", PYTHON
    ),
    "another partition's acknowledgement is none": Told(
        write,
        lies.of_another_partition("Produce"),
        RecordDeliveryError,
        "t-1 was not delivered",
        PYTHON,
    ),
    "an acknowledgement that contradicts itself is none": Told(
        write,
        lies.with_partitions_twice("Produce"),
        RecordDeliveryError,
        "the response has t-1 twice",
        PYTHON,
    ),
    "a base offset is not used": Told(
        write, lies.with_partition_fields("Produce", base_offset=-9), clients=PYTHON
    ),
    "an acknowledgement without an offset is none": Told(
        write,
        lies.with_partition_fields("Produce", base_offset=-9),
        RecordDeliveryError,
        "acknowledged without an offset",
        CONFLUENT,
    ),
    "an error of records that there is not is shown": Told(
        write, lies.with_unknown_error("Produce"), RecordDeliveryError, "t-1 was not delivered"
    ),
    "a negative producer id is none": Told(
        write,
        lies.with_fields("InitProducerId", producer_id=-1),
        InvalidResponseError,
        "the producer id is -1",
        PYTHON,
    ),
    "a negative epoch is none": Told(
        transact,
        lies.with_fields("InitProducerId", producer_epoch=-1),
        InvalidResponseError,
        "begin a transaction .* epoch -1",
        PYTHON,
    ),
    "a coordinator of transactions that there is not is looked for until the time-out": Told(
        transact,
        lies.with_fields("FindCoordinator", node_id=lies.NO_NODE),
        KafkaRequestError,
        "begin a transaction",
        PYTHON,
    ),
    "a transaction's partition that is left out is not added": Told(
        pass_on,
        lies.without_topics("AddPartitionsToTxn"),
        KafkaRequestError,
        "leaves out t-1",
        PYTHON,
    ),
    "a transaction's offset that is left out is not committed": Told(
        pass_on, lies.without_topics("TxnOffsetCommit"), KafkaRequestError, "leaves out t-0", PYTHON
    ),
    "a query without its committed offset does not begin": Told(
        pass_on,
        lies.of_another_partition("OffsetFetch"),
        InvalidResponseError,
        "leaves out t-0",
        PYTHON,
    ),
    "an end of a transaction that fails for an unknown reason is told": Told(
        transact,
        lies.with_unknown_error("EndTxn"),
        KafkaRequestError,
        "commit a transaction",
        PYTHON,
    ),
}

VERSIONS: Final = {
    "a broker without a version in common is named": Told(
        read,
        lies.with_versions(1, 100, 200),
        KafkaRequestError,
        "fetch from t-0: .*FetchRequest",
        PYTHON,
    ),
    "a broker that speaks no API cannot be reached": Told(
        read, lies.with_fields("ApiVersions", api_keys=[]), BrokerUnreachableError, clients=PYTHON
    ),
    "a broker of negative versions cannot be reached": Told(
        list_offsets, lies.with_versions(None, -5, -1), BrokerUnreachableError, clients=PYTHON
    ),
    "a broker whose versions are in disorder cannot be written to": Told(
        write, lies.with_versions(None, 9, 1), BrokerUnreachableError, clients=PYTHON
    ),
}


def limits_until(error: _Expected, attempt: int) -> Mapping[str, str]:
    """Return the limits of a use that ends in an error: a short wait where it is a time-out.

    Each attempt has three times as long as the one before: on a busy machine the first may be
    over before its client has done anything.
    """
    limits = {**IMPATIENT, "api": str(int(IMPATIENT["api"]) * 3**attempt)}
    is_time_out = error in (FetchTimeoutError, BrokerUnreachableError, _NO_ANSWER)
    return limits if is_time_out else {**limits, "poll": PATIENT["poll"]}


def _parameters(told: Mapping[str, Told]) -> list[object]:
    return [
        pytest.param(client, each, id=f"{behaviour}-{client}")
        for behaviour, each in told.items()
        for client in each.clients
    ]


@contextmanager
def honest_world(client: str) -> Iterator[HostileWorld]:
    with hostile_broker() as broker:
        broker.cluster.append(INPUT, VALUES, 10)
        made = HostileWorld(client, broker)
        try:
            yield made
        finally:
            made.close()


@pytest.fixture(scope="module", autouse=True)
def _loaded():
    """Load what is used before time is taken, and check that honest answers are believed."""
    for client in BOTH:
        for use, result in HONEST.items():
            if client == "kafka-python" or use not in TRANSACTIONAL:
                with honest_world(client) as world:
                    assert use(world) == result


@pytest.fixture
def world(client):
    with honest_world(client) as made:
        yield made


@pytest.mark.parametrize(
    ("client", "told"), _parameters(FETCHES | BROKEN | METADATA | OFFSETS | WRITES | VERSIONS)
)
def test_a_lie_ends_in_an_error_or_is_survived(world, told):
    world.broker.lies = (told.lie,)
    if told.error is None:
        assert told.use(world) == HONEST[told.use]
    else:
        for attempt in range(ATTEMPTS):
            world.limits = limits_until(told.error, attempt)
            started = time.monotonic()
            with pytest.raises(PysparkKafkaError) as caught:
                told.use(world)
            assert time.monotonic() - started < BOUND_S
            if world.broker.answered[told.lie.api] and isinstance(caught.value, told.error):
                break
        with pytest.raises(told.error, match=rf"(?s)^\[KAFKA_.*{told.text}"):
            raise caught.value
    assert world.broker.answered[told.lie.api]


def _broken() -> Iterator[object]:
    """Yield what is broken: all of our own parsers, and some of each client's."""
    for client, apis in BY_CLIENT.items():
        for use, names in BY_USE.items():
            for api in names:
                frames = FRAMES if api in apis else SOME_FRAMES[client]
                for frame in frames:
                    if client == "kafka-python" or use not in TRANSACTIONAL:
                        test_id = f"{use.__name__}-{api} {frame}-{client}"
                        yield pytest.param(client, use, api, frame, id=test_id)


@pytest.mark.parametrize(("client", "use", "api", "name"), list(_broken()))
def test_a_broken_response_is_survived(world, use, api, name):
    world.broker.lies = (of_api(FRAMES[name], api, once=True),)
    assert use(world) == HONEST[use]


SNAPPY_BOMB: Final = Batch(count=1, codec=SNAPPY).with_packed(b"\xff\xff\xff\xff\x0f\0x")
"""A batch that says that it becomes 4 GiB."""

CRASHES: Final = {
    "metadata of another topic": (list_offsets, lies.of_another_topic("Metadata"), SIGSEGV),
    "records of another partition": (read, lies.of_another_partition("Fetch", 1), SIGABRT),
    "a block of 4 GiB": (read, records(SNAPPY_BOMB), SIGABRT),
}
"""Crashes of librdkafka, as on the page on faults: the use, the lie and the signal."""


def use_lied_to(name: str) -> None:
    """Use librdkafka in this process, with 3 GiB of memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (3 * GIB, 3 * GIB))
    use, lie, _ = CRASHES[name]
    with honest_world("confluent") as world:
        world.broker.lies = (lie,)
        use(world)


@pytest.mark.parametrize("name", CRASHES)
def test_the_page_on_faults_knows_what_ends_librdkafka(name):
    """It runs in another process. A release that survives it is to be named on that page."""
    process = get_context("spawn").Process(target=use_lied_to, args=(name,))
    process.start()
    process.join(60)
    *_, signal = CRASHES[name]
    assert process.exitcode == -signal
    assert name in (ROOT / "docs/operate/faults.md").read_text()
