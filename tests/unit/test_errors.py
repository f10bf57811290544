import copy
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyspark_kafka.adapters.memory.metadata_log import MemoryMetadataLog
from pyspark_kafka.adapters.spark.data_source import CatalogTableError, SaveModeError
from pyspark_kafka.application.checkpoints.logs import ConcurrentUpdateError
from pyspark_kafka.application.checkpoints.offsets import QueryIsRunningError, UnusableOffsetsError
from pyspark_kafka.application.continuous import errors as continuous_errors
from pyspark_kafka.application.continuous.errors import (
    FunctionError,
    NotEnoughSlotsError,
    RestartsExhaustedError,
    TaskFailedError,
    UncertainEndError,
)
from pyspark_kafka.bootstrap.plugins import PluginError
from pyspark_kafka.brokers.errors import BrokerStartError, JarsError, JavaError
from pyspark_kafka.domain import errors as domain_errors
from pyspark_kafka.domain.errors import (
    BrokerUnreachableError,
    DisallowedOptionError,
    DriverLostError,
    FactsError,
    Fault,
    InvalidResponseError,
    KafkaRequestError,
    KernelLibraryError,
    LeaderUnavailableError,
    MetadataLogError,
    MissingDependencyError,
    NoCheckpointError,
    OptionPolicyError,
    OptionsError,
    PysparkKafkaError,
    UnknownTopicError,
    UnsupportedFeatureError,
    requires_extra,
)
from pyspark_kafka.domain.reading import errors as reading_errors
from pyspark_kafka.domain.reading.errors import (
    CorruptBatchError,
    DataLossError,
    FetchTimeoutError,
    LogTruncatedError,
    MalformedTimestampError,
    MissingOffsetsError,
    NoCommittedOffsetError,
    NoOffsetForTimestampError,
    OffsetOutOfRangeError,
    OffsetsMismatchError,
    OversizedRecordError,
    ResolvedOffsetsError,
    StreamOffsetsMismatchError,
    TimestampsMismatchError,
    TopicOffsetsMismatchError,
    TopicRecreatedError,
    partition_set,
)
from pyspark_kafka.domain.security import errors as security_errors
from pyspark_kafka.domain.security.errors import (
    AuthenticationError,
    AuthorizationError,
    TlsError,
    TlsFailure,
    TokenUnavailableError,
)
from pyspark_kafka.domain.security.rights import (
    IDEMPOTENT_WRITE,
    Operation,
    group_right,
    topic_right,
    transactional_id_right,
)
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values import errors as value_errors
from pyspark_kafka.domain.values.errors import (
    DeadLetterLoopError,
    DecodedTooLargeError,
    IncompatibleSchemaError,
    MalformedValueError,
    NewSchemaError,
    RegistryRefusedError,
    RegistryUnavailableError,
    UnencodableValueError,
    UnknownSchemaError,
)
from pyspark_kafka.domain.values.registry import Schema, SchemaType, SubjectVersion
from pyspark_kafka.domain.writing import errors as writing_errors
from pyspark_kafka.domain.writing.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    NullTopicError,
    ProducerFencedError,
    QueryReplacedError,
    RecordDeliveryError,
    RecordTooLargeError,
    RejectedRecordError,
    SinkSchemaError,
    TransactionLostError,
    UnknownPartitionError,
)

MODULES = {
    *(each.__name__ for each in (domain_errors, reading_errors, writing_errors)),
    *(continuous_errors.__name__, security_errors.__name__, value_errors.__name__),
    ConcurrentUpdateError.__module__,
    *(kind.__module__ for kind in (SaveModeError, PluginError, JavaError)),
    *(kind.__module__ for kind in (QueryIsRunningError, UnusableOffsetsError)),
}
"""Where errors are defined whose texts are pinned here."""

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
URL = "http://registry:8081"
VERSION = SubjectVersion("t-value", 2, 7, Schema(SchemaType.AVRO, "{}"))

ERRORS: list[tuple[PysparkKafkaError, type[Exception], Fault]] = [
    (OptionsError(["one"]), ValueError, Fault.USER),
    (OptionsError(["one", "two"]), ValueError, Fault.USER),
    (DisallowedOptionError({"acks": "THE_LIST", "linger.ms": "ANOTHER"}), ValueError, Fault.USER),
    (OptionPolicyError("THE_LIST", "kafka.acks"), ValueError, Fault.ENVIRONMENT),
    (OffsetsMismatchError([T0], [T1, T0]), ValueError, Fault.USER),
    (StreamOffsetsMismatchError([T0, T1], [T0]), ValueError, Fault.USER),
    (TimestampsMismatchError("start", [T0], [T0, T1]), ValueError, Fault.USER),
    (TopicOffsetsMismatchError(["v", "u"], [T1, T0]), ValueError, Fault.USER),
    (NoOffsetForTimestampError(T0, 1_700_000_000_000), LookupError, Fault.USER),
    (NoCommittedOffsetError("g", [T1, T0]), LookupError, Fault.USER),
    (PluginError("pkg:client", "why"), ImportError, Fault.ENVIRONMENT),
    (LogTruncatedError(T0, 7, 5), Exception, Fault.CLUSTER),
    (TopicRecreatedError(T0, 7, earliest=0), Exception, Fault.DATA),
    (DriverLostError("why"), ConnectionError, Fault.ENVIRONMENT),
    (MetadataLogError("s3://b/p/0", "What happened."), Exception, Fault.ENVIRONMENT),
    (NoCheckpointError("s3://b/p", "There is none."), MetadataLogError, Fault.USER),
    (
        QueryIsRunningError("/c/offsets", "batch 5 began 3 seconds ago", "Stop the query"),
        Exception,
        Fault.USER,
    ),
    (
        UnusableOffsetsError("offset 9 of t-0 is not in Kafka", "Choose another"),
        ValueError,
        Fault.USER,
    ),
    (ResolvedOffsetsError(T0, 3, 1), ValueError, Fault.USER),
    (
        KernelLibraryError("its file is damaged", "Install pyspark-kafka again"),
        ImportError,
        Fault.ENVIRONMENT,
    ),
    (MissingDependencyError("confluent-kafka", "confluent"), ImportError, Fault.ENVIRONMENT),
    (JavaError("only 11 was found", 17), OSError, Fault.ENVIRONMENT),
    (JarsError("Kafka", "no network"), Exception, Fault.ENVIRONMENT),
    (BrokerStartError("Kafka ended", Path("/no/such.log")), Exception, Fault.ENVIRONMENT),
    (BrokerUnreachableError("b:9092", 30.0), ConnectionError, Fault.CLUSTER),
    (BrokerUnreachableError("b:9092", 1.5, "connection refused"), ConnectionError, Fault.CLUSTER),
    (BrokerUnreachableError("a:9093, b,[::1]", 30), ConnectionError, Fault.USER),
    (
        AuthenticationError("b:9092", "PLAIN", "ada", "Invalid username or password"),
        PermissionError,
        Fault.USER,
    ),
    (
        AuthenticationError("b:9092", "OAUTHBEARER", "", "invalid_token."),
        PermissionError,
        Fault.USER,
    ),
    (
        TokenUnavailableError("https://idp/token", "it did not answer in time"),
        ConnectionError,
        Fault.ENVIRONMENT,
    ),
    (
        TlsError("b:9092", TlsFailure.CERTIFICATE_EXPIRED, "certificate has expired"),
        ConnectionError,
        Fault.CLUSTER,
    ),
    (
        AuthorizationError(
            "a fetch", [topic_right(Operation.READ, "t")], "b:9092,c:9092", "User:ada"
        ),
        PermissionError,
        Fault.USER,
    ),
    (
        AuthorizationError(
            "a write",
            [
                IDEMPOTENT_WRITE,
                group_right(Operation.DESCRIBE, "my group"),
                *(transactional_id_right(Operation.WRITE, f"x{number}") for number in range(4)),
            ],
            "b:9092",
        ),
        PermissionError,
        Fault.USER,
    ),
    (UnknownTopicError(["a"], "subscribe", "b:9092"), LookupError, Fault.USER),
    (UnknownTopicError(["a"], "topic", "b:9092"), LookupError, Fault.USER),
    (UnknownTopicError(["a", "b"], "assign", "b:9092"), LookupError, Fault.USER),
    (KafkaRequestError("ListOffsets", "not authorized"), Exception, Fault.CLUSTER),
    (
        KafkaRequestError("a request", "30 s have passed.", outcome="did not complete"),
        Exception,
        Fault.CLUSTER,
    ),
    (
        InvalidResponseError("a fetch from t-0", "the response has t-0 twice."),
        KafkaRequestError,
        Fault.CLUSTER,
    ),
    (OffsetOutOfRangeError(T0, 5, earliest=10, latest=20), Exception, Fault.DATA),
    (MissingOffsetsError(T0, 5, 10), Exception, Fault.DATA),
    (FetchTimeoutError(T0, 5, 512), TimeoutError, Fault.CLUSTER),
    (CorruptBatchError(T0, 5, "its checksum does not match"), Exception, Fault.CLUSTER),
    (OversizedRecordError(T1, 5, 30, "headers", "maxRecordHeaders", 20), Exception, Fault.DATA),
    (MalformedTimestampError(T1, 5, 2**62), OverflowError, Fault.DATA),
    (UnsupportedFeatureError("memory", "read by pattern"), NotImplementedError, Fault.USER),
    (SinkSchemaError(["one", "two"]), ValueError, Fault.USER),
    (CatalogTableError(), ValueError, Fault.USER),
    (SaveModeError("Overwrite"), ValueError, Fault.USER),
    (NullTopicError(), ValueError, Fault.DATA),
    (InvalidRecordError("a header has no key", "Do this."), ValueError, Fault.DATA),
    (RecordDeliveryError("t", 1, 20, "no leader."), Exception, Fault.CLUSTER),
    (
        InvalidTimestampError("t", 1, 20, "Timestamp 5 of message with offset 0 is out of range."),
        RecordDeliveryError,
        Fault.DATA,
    ),
    (
        UnknownPartitionError("t", 7, 20, "the topic's partitions are 0 to 1"),
        RecordDeliveryError,
        Fault.DATA,
    ),
    (RejectedRecordError("t", 1, 20, "it has no key"), RecordDeliveryError, Fault.DATA),
    (
        LeaderUnavailableError("a request for offsets", "broker 7 has no address."),
        KafkaRequestError,
        Fault.CLUSTER,
    ),
    (
        RecordTooLargeError("t", None, 20, "a request holds 10 bytes"),
        RecordDeliveryError,
        Fault.DATA,
    ),
    (ProducerFencedError("p-q-0-0"), Exception, Fault.USER),
    (QueryReplacedError("its driver stopped the query"), Exception, Fault.USER),
    (FunctionError(T0, 3, 9, "ValueError: why"), Exception, Fault.USER),
    (NotEnoughSlotsError(5, 2, " within 60 s"), Exception, Fault.ENVIRONMENT),
    (TaskFailedError("[KAFKA_CORRUPT_BATCH] What the task said."), Exception, Fault.ENVIRONMENT),
    (TaskFailedError("SystemError: why"), Exception, Fault.ENVIRONMENT),
    (RestartsExhaustedError(3, 600, "why"), Exception, Fault.ENVIRONMENT),
    (UncertainEndError("task 0 has not ended", "Do this."), Exception, Fault.ENVIRONMENT),
    (ConcurrentUpdateError(MemoryMetadataLog(), 7), MetadataLogError, Fault.USER),
    (
        TransactionLostError(["p-q-0-0", "p-q-1-0"], "they timed out", "Do this."),
        Exception,
        Fault.ENVIRONMENT,
    ),
    (RegistryUnavailableError(URL, "it is down"), ConnectionError, Fault.CLUSTER),
    (RegistryRefusedError(URL, "a login", "401"), PermissionError, Fault.USER),
    (UnknownSchemaError(URL, "subject 's'"), LookupError, Fault.DATA),
    (IncompatibleSchemaError("The schema of s", "a field is missing"), ValueError, Fault.USER),
    (MalformedValueError("value", T0, 5, "it ends too early"), ValueError, Fault.DATA),
    (NewSchemaError("value", T0, 5, VERSION, 3), ValueError, Fault.USER),
    (DeadLetterLoopError("bad"), ValueError, Fault.USER),
    (DecodedTooLargeError(3), OverflowError, Fault.DATA),
    (UnencodableValueError("value", 3, "a.b", "is null"), ValueError, Fault.USER),
]
TEXTS = Path(__file__).with_name("errors.txt").read_text("utf-8").rstrip("\n").split("\n\n")
"""The name and the text of each of them, in their order."""

# Its texts have tests of their own, with the findings of data loss.
LONG_ERRORS: list[tuple[PysparkKafkaError, type[Exception], Fault, str]] = [
    (
        DataLossError("PARTITIONS_DELETED", "Partitions Set(t-0) have been deleted."),
        Exception,
        Fault.DATA,
        "[KAFKA_DATA_LOSS.PARTITIONS_DELETED] ",
    )
]


def kinds(kind: type[PysparkKafkaError] = PysparkKafkaError) -> Iterator[type[PysparkKafkaError]]:
    """Every kind of error of these modules that can be raised."""
    for child in kind.__subclasses__():
        if child.__module__ in MODULES and child is not FactsError:
            yield child
        yield from kinds(child)


def name(value: object) -> str | None:
    return type(value).__name__ if isinstance(value, PysparkKafkaError) else None


def test_every_error_is_tried():
    assert {type(row[0]) for row in (*ERRORS, *LONG_ERRORS)} == set(kinds())


@pytest.mark.parametrize(
    "module", [domain_errors, reading_errors, writing_errors, continuous_errors]
)
def test_tree(module):
    """The tree at the head of a module draws each of its errors and nothing else."""
    drawn = re.findall(r"[├└]── (\w+)", module.__doc__ or "")
    assert sorted(drawn) == sorted(
        kind.__name__ for kind in kinds() if kind.__module__ == module.__name__
    )


def test_conditions_are_distinct():
    """No two kinds of error share a condition, unless one is the other's special case."""
    own = [kind for kind in kinds() if "condition" in vars(kind)]
    assert set(kinds()) - set(own) == {StreamOffsetsMismatchError}
    assert len({kind.condition for kind in own}) == len(own)


@pytest.mark.parametrize(
    ("error", "builtin", "fault", "text"),
    [(*row, text) for row, text in zip(ERRORS, TEXTS, strict=True)],
    ids=name,
)
def test_error(error, builtin, fault, text):
    """An error states its condition, the facts and the next step, and is what Python calls it."""
    assert f"{type(error).__name__}\n{error}" == text
    assert error.fault is fault
    assert isinstance(error, builtin)


@pytest.mark.parametrize(("error", "builtin", "fault", "start"), LONG_ERRORS, ids=name)
def test_long_error(error, builtin, fault, start):
    """An error with the words of a condition of Spark's begins with that condition."""
    assert str(error) == f"{start}{error.message}"
    assert error.fault is fault
    assert isinstance(error, builtin)


@pytest.mark.parametrize("error", [row[0] for row in (*ERRORS, *LONG_ERRORS)], ids=name)
def test_an_error_survives_the_pickle_between_sparks_processes(error):
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert twin.args == error.args
        assert vars(twin) == vars(error)
        assert (twin.condition, twin.sql_state) == (error.condition, error.sql_state)


def test_notes_survive_a_pickle():
    error = KafkaRequestError("ListOffsets", "not authorized")
    error.add_note("while the batch was planned")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while the batch was planned"]  # noqa: S301


@pytest.mark.parametrize(
    ("error", "facts"),
    [
        (OptionsError(p for p in ("one", "two")), {"problems": ("one", "two")}),
        (
            OffsetOutOfRangeError(T0, 5, earliest=10, latest=20),
            {"partition": T0, "offset": 5, "earliest": 10, "latest": 20},
        ),
        (DisallowedOptionError({"acks": "L"}), {"options": {"acks": "L"}}),
        (LogTruncatedError(T0, 7, 5), {"partition": T0, "offset": 7, "diverges_at": 5}),
        (MissingOffsetsError(T0, 5, 10), {"partition": T0, "start": 5, "end": 10}),
        (DataLossError("PARTITIONS_DELETED", "gone"), {"sub_condition": "PARTITIONS_DELETED"}),
        (SinkSchemaError(p for p in ("one", "two")), {"problems": ("one", "two")}),
        (RecordTooLargeError("t", None, 20, "why"), {"topic": "t", "partition": None, "size": 20}),
        (
            TransactionLostError(iter(["a", "b"]), "why", "Do this."),
            {"transactional_ids": ("a", "b")},
        ),
    ],
    ids=name,
)
def test_what_a_caller_needs_to_act_on_stands_on_the_error_as_attributes(error, facts):
    assert {fact: getattr(error, fact) for fact in facts} == facts


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (MalformedTimestampError(T0, 5, 1), "22008"),
        (DataLossError("PARTITIONS_DELETED", "gone"), "22000"),
        (OptionsError(["one"]), None),
    ],
    ids=name,
)
def test_an_error_has_the_sql_state_that_spark_gives_its_condition_if_it_gives_one(error, state):
    assert error.sql_state == state


def test_no_problem_is_no_error():
    with pytest.raises(ValueError, match=r"^an OptionsError names at least one problem$"):
        OptionsError([])


def test_a_stream_s_mismatch_is_a_mismatch():
    assert isinstance(StreamOffsetsMismatchError([T0], [T1]), OffsetsMismatchError)


def test_mismatches_name_their_end():
    assert "timestamp based end offsets" in str(TimestampsMismatchError("end", [T0], [T1]))


@pytest.mark.parametrize(
    ("partitions", "text"),
    [
        ([], "Set()"),
        ([T0], "Set(t-0)"),
        ([TopicPartition("t", 10), TopicPartition("t", 2), T0], "Set(t-0, t-2, t-10)"),
    ],
)
def test_partitions_are_printed_like_a_set_in_scala_in_order(partitions, text):
    assert partition_set(partitions) == text


def test_of_many_lost_transactions_some_are_named():
    """A batch may have thousands; the error has all of them, and its text the first five."""
    names = [f"p-q-{number}-0" for number in range(1_000)]
    error = TransactionLostError(names, "they timed out", "Do this.")
    assert error.transactional_ids == tuple(names)
    assert "'p-q-4-0' and 995 more cannot be committed" in str(error)


def test_a_missing_package_that_no_extra_has():
    error = MissingDependencyError("A package", package="vendor")
    assert str(error).endswith("A package is not installed. Install it with: pip install vendor")


def test_a_missing_dependency_keeps_its_message_between_processes():
    error = MissingDependencyError("a client", "confluent")
    assert pickle.loads(pickle.dumps(error)).msg == error.msg == str(error)  # noqa: S301


@pytest.mark.parametrize("missing", ["vendor", "vendor.part"])
def test_a_module_that_is_not_installed_names_its_extra(missing):
    with requires_extra("tls", "vendor", "the vendor"):
        pass
    with (
        pytest.raises(
            MissingDependencyError, match=r"the vendor .*'pyspark-kafka\[tls\]'"
        ) as caught,
        requires_extra("tls", "vendor", "the vendor"),
    ):
        raise ModuleNotFoundError(name=missing)
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_missing_module_of_another_kind_is_no_matter_of_an_extra():
    with pytest.raises(ModuleNotFoundError), requires_extra("tls", "vendor", "the vendor"):
        raise ModuleNotFoundError(name="vendors")


def test_an_authorization_error_names_a_right():
    """An error without a right would not say what to grant."""
    with pytest.raises(ValueError, match="at least one right"):
        AuthorizationError("a request", [], "b:9092")


def test_facts_contain_no_secret():
    """A client's text may have a password: neither the message nor a pickle of the error has it."""
    error = DriverLostError("cannot connect to http://ann:hunter2@host")
    assert error.reason == "cannot connect to http://host"
    assert b"hunter2" not in pickle.dumps(error)
