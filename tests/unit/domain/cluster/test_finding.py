import pytest

from pyspark_kafka.domain.cluster.finding import (
    NEEDED,
    Level,
    PeerCertificate,
    Principal,
    check_apis,
    check_certificate,
    check_group,
    check_redaction,
    check_topic,
    check_transactions,
    error,
    ok,
    warning,
    worst,
)
from pyspark_kafka.domain.security.rights import Operation

ADA = Principal("User:ada", "h:9092")
DAY_MS = 86_400_000
NEWEST = {api.key: (0, api.version) for api in NEEDED}


def test_the_exit_status_is_that_of_the_worst():
    good, bad, worse = ok("a", "b"), warning("a", "b", "c"), error("a", "b", "c")
    assert [worst(each).exit_status for each in ([], [good], [good, bad], [bad, worse, good])] == [
        0,
        0,
        3,
        1,
    ]


def test_secrets_that_spark_shows():
    """A session hides them where the configuration of Spark does not."""
    assert check_redaction([]).level is Level.OK
    found = check_redaction(["metadataPath", "kafka.ssl.keystore.key"])
    assert found.level is Level.WARNING
    assert found.summary.endswith(" show metadataPath, kafka.ssl.keystore.key")
    assert "pyspark_kafka.session()" in found.advice
    assert "'spark.redaction.regex'" in found.advice


@pytest.mark.parametrize(
    ("days", "level"), [(365, Level.OK), (30, Level.OK), (29, Level.WARNING), (-1, Level.WARNING)]
)
def test_a_certificate_that_ends_within_a_month_is_a_warning(days, level):
    found = PeerCertificate(("CN=broker", "CN=root"), days * DAY_MS, "TLSv1.3", "AES")
    finding = check_certificate("h:9093", found, 0)
    assert finding.level is level
    assert finding.summary == f"h:9093: TLSv1.3, CN=broker < CN=root, {days} days left"


def test_missing_versions_of_apis_are_findings():
    assert [each.level for each in check_apis(None)] == [Level.OK]
    assert [each.level for each in check_apis(NEWEST)] == [Level.OK]
    (old,) = check_apis({**NEWEST, 3: (0, 9)})
    assert (old.level, old.summary) == (
        Level.WARNING,
        "no Metadata 10, which detecting recreated topics needs",
    )
    assert old.advice == "Upgrade the brokers to Kafka 2.8 or newer."
    (missing,) = check_apis({key: found for key, found in NEWEST.items() if key != 1})
    assert missing.level is Level.ERROR


def test_a_reader_needs_no_right_to_write():
    allowed = frozenset({Operation.DESCRIBE, Operation.READ})
    read, write = check_topic(ADA, "t", allowed)
    assert read == ok("rights", "read: Read on the topic 't'")
    assert write.level is Level.WARNING
    assert write.summary == "write, exactly-once: Write on the topic 't' is missing"
    assert write.advice == (
        "If the query needs it: kafka-acls.sh --bootstrap-server h:9092 --add --allow-principal "
        "User:ada --operation Write --topic t"
    )
    none = check_topic(ADA, "t", frozenset({Operation.DESCRIBE}))
    assert [each.level for each in none] == [Level.ERROR, Level.ERROR]


def test_rights_that_are_not_told_are_no_error():
    assert [each.level for each in check_topic(ADA, "t", None)] == [Level.WARNING] * 2
    assert check_group(ADA, "g", None).summary.endswith("cannot be checked")


def test_to_commit_offsets_takes_the_right_to_read_the_group():
    assert check_group(ADA, "g", frozenset({Operation.READ})).level is Level.OK
    assert check_group(ADA, "g", frozenset()).level is Level.ERROR


def test_rights_on_a_transactional_id():
    """Brokers tell only whether it may be described, which the right to write includes."""
    assert check_transactions(ADA, "x", frozenset({Operation.DESCRIBE})).level is Level.OK
    refused = check_transactions(ADA, "x", frozenset())
    assert refused.level is Level.ERROR
    assert "--operation Write --transactional-id x" in refused.advice
    assert check_transactions(ADA, "x", None).level is Level.WARNING
