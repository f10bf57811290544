import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka.domain.checkpoints.entries import (
    SINK_LOG_VERSION,
    BatchState,
    SchemaVersion,
    SinkLogEntry,
    other_query_error,
    read_initial_offsets,
    read_schema_versions,
    write_initial_offsets,
    write_schema_versions,
)
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.writing.transaction import Transaction

from ..strategies import logged_offsets

OFFSETS = PartitionOffsets({TopicPartition("kafka-initial-offset-2-1-0", n): 0 for n in range(3)})
JSON = b'{"kafka-initial-offset-2-1-0":{"0":0,"1":0,"2":0}}'


def test_the_file_begins_with_a_zero_byte_and_the_version_as_spark_needs_it():
    assert write_initial_offsets(OFFSETS) == b"\0v1\n" + JSON


@given(logged_offsets)
def test_what_is_written_is_read(offsets):
    assert read_initial_offsets(write_initial_offsets(offsets)) == offsets


def test_offsets_without_a_version():
    """Spark 2.1.0 wrote a byte of the length, and the offsets alone."""
    assert read_initial_offsets(bytes([len(JSON)]) + JSON) == OFFSETS


def test_offsets_on_several_lines():
    assert read_initial_offsets(b"\0v1\n" + JSON.replace(b",", b",\n")) == OFFSETS


NEWER = (
    "UnsupportedLogVersion: maximum supported log version is {}, but encountered {}. The log file "
    "was produced by a newer version of Spark and cannot be read by this version. Please upgrade."
)
NO_VERSION = "Log file was malformed: failed to read correct log version from {}."
NO_OFFSETS = 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got '


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\0v99999\n" + JSON, NEWER.format("v1", "v99999")),
        (b"\0vx\n" + JSON, NO_VERSION.format("vx")),
        (b"\0v0\n" + JSON, NO_VERSION.format("v0")),
        (b"\0v\n" + JSON, NO_VERSION.format("v")),
        (b"\0v1" + JSON, "Log file was malformed: failed to detect the log file version line."),
        (b"\0v1\n\xff", "Log file was malformed: it is not text."),
        (b"", NO_OFFSETS),
        (b"\0v1\n[]", f"{NO_OFFSETS}[]"),
    ],
)
def test_what_cannot_be_read_is_refused_with_sparks_words(content, problem):
    with pytest.raises(ValueError, match=r"\S") as caught:
        read_initial_offsets(content)
    assert str(caught.value) == problem


VERSIONS = st.builds(SchemaVersion, st.text(), st.integers(1, 2**31 - 1))


@given(st.dictionaries(st.sampled_from(["key", "value"]), VERSIONS, min_size=1))
def test_versions_are_read_as_they_were_written(versions):
    assert read_schema_versions(write_schema_versions(versions)) == versions


def test_an_entry_is_a_line_with_the_version_and_a_json_object():
    content = b'v1\n{"key":{"subject":"s","version":1},"value":{"subject":"t-value","version":3}}'
    versions = {"value": SchemaVersion("t-value", 3), "key": SchemaVersion("s", 1)}
    assert write_schema_versions(versions) == content


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff", "it is not text"),
        (b"", "failed to read correct log version"),
        (b"v2\n{}", "maximum supported log version is v1"),
        (b"v1\n", "malformed"),
        (b"v1\n{}", "malformed"),
        (b"v1\n[]", "malformed"),
        (b'v1\n{"value":{"subject":"s"}}', "malformed"),
        (b'v1\n{"value":{"subject":7,"version":1}}', "malformed"),
        (b'v1\n{"value":{"subject":"s","version":0}}', "malformed"),
        (b'v1\n{"value":{"subject":"s","version":true}}', "malformed"),
    ],
)
def test_a_malformed_entry_is_refused(content, problem):
    with pytest.raises(ValueError, match=problem):
        read_schema_versions(content)


transactions = st.builds(
    Transaction, st.text(min_size=1), st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1)
)
entries = st.builds(
    SinkLogEntry,
    st.integers(0, 2**63 - 1),
    st.sampled_from(BatchState),
    st.lists(transactions, max_size=5, unique_by=lambda each: each.transactional_id).map(tuple),
    st.none() | st.uuids().map(str),
    st.none() | st.binary().map(lambda content: sha256(content).hexdigest()),
    st.integers(-1, 2**63 - 1),
)

DIGEST = "0a" * 32
ONE = SinkLogEntry(7, BatchState.PREPARED, (Transaction("p-q-0-0", 4_000, 3),), "q", DIGEST, 9)


def test_bytes_of_a_sink_log():
    line, text = ONE.to_bytes().split(b"\n")
    assert line == b"v2"
    assert json.loads(text) == {
        "batchId": 7,
        "state": "prepared",
        "queryId": "q",
        "offsets": DIGEST,
        "startedMs": 9,
        "transactions": [{"transactionalId": "p-q-0-0", "producerId": 4_000, "producerEpoch": 3}],
    }


@given(entries)
def test_a_written_sink_log_entry_is_read(entry):
    assert SinkLogEntry.from_bytes(entry.to_bytes()) == entry


@given(entries, st.sampled_from(BatchState))
def test_a_state_changes_nothing_else(entry, state):
    changed = entry.with_state(state)
    assert changed.state is state
    assert changed.with_state(entry.state) == entry


def test_version_1_of_a_sink_log_has_the_batch_and_its_transactions_only():
    content = json.loads(ONE.to_bytes().split(b"\n")[1])
    old = {key: content[key] for key in ("batchId", "state", "transactions")}
    read = SinkLogEntry.from_bytes(f"v1\n{json.dumps(old)}".encode())
    assert read == SinkLogEntry(7, BatchState.PREPARED, ONE.transactions)


@pytest.mark.parametrize(
    ("state", "last"),
    [(BatchState.PREPARED, 6), (BatchState.COMMITTED, 7), (BatchState.DROPPED, 6)],
)
def test_a_batch_can_be_seen_once_it_is_committed(state, last):
    assert ONE.with_state(state).committed_through == last


NO_ENTRY = "Log file was malformed: it is not an entry of a sink log."
V1: dict[str, object] = {"batchId": 1, "state": "prepared", "transactions": []}
PLANTED: dict[str, object] = {"transactionalId": "i", "producerId": 1, "producerEpoch": 1}


def _changes(entry: dict[str, object], **values: list[object]) -> list[dict[str, object]]:
    return [{**entry, name: value} for name, each in values.items() for value in each]


BAD_V1 = [
    *_changes(V1, state=["lost", ["prepared"]], transactions=[[{}], [1], {}], more=[1]),
    *_changes(V1, batchId=["x", True, -1, 2**63, float("nan"), 1e2]),
    *(
        {**V1, "transactions": [planted]}
        for planted in (
            {"transactionalId": "i"},
            *_changes(PLANTED, producerId=[-1, 2**63, "1"], producerEpoch=[-1, 2**15, None]),
            *_changes(PLANTED, transactionalId=["", 7, "\ud800", "x" * 2**15], more=[1]),
        )
    ),
    {**V1, "transactions": [PLANTED, PLANTED]},
]
BAD_V2 = [
    V1,
    *_changes(
        json.loads(ONE.to_bytes().split(b"\n")[1]), more=[1], queryId=[7, "", "\n", "x" * 250]
    ),
    *_changes(
        json.loads(ONE.to_bytes().split(b"\n")[1]),
        offsets=[7, DIGEST[1:], DIGEST.upper()],
        startedMs=[-2, 2**63, True, None],
    ),
]
BAD_TEXTS = [b"", b"\xff", b"[]", b"null", b'{"batchId":1,"state":"prepared"}', b"[" * 100_000]
BAD_TEXTS += [b'{"batchId":1,"batchId":1,"state":"prepared","transactions":[]}']


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"v3\n{}", NEWER.format("v2", "v3")),
        (b"", NO_VERSION.format("")),
        (b"{}", NO_VERSION.format("{}")),
        *((b"v1\n" + text, NO_ENTRY) for text in BAD_TEXTS),
        *((f"v1\n{json.dumps(entry)}".encode(), NO_ENTRY) for entry in BAD_V1),
        *((f"v2\n{json.dumps(entry)}".encode(), NO_ENTRY) for entry in BAD_V2),
    ],
)
def test_refusals_of_a_sink_log(content, problem):
    assert SINK_LOG_VERSION == 2
    with pytest.raises(ValueError, match=r"\S") as caught:
        SinkLogEntry.from_bytes(content)
    assert str(caught.value) == problem


def test_a_log_of_another_query_names_both():
    """Text from the log is cut, as anyone may have written it."""
    error = str(other_query_error("log/3", "x" * 10_000, "q"))
    assert "(log/3)" in error
    assert "this one is 'q'" in error
    assert len(error) < 1_000
