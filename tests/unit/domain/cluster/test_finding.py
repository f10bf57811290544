import pytest

from pyspark_kafka.domain.cluster.finding import (
    NEEDED,
    Level,
    PeerCertificate,
    Principal,
    check_apis,
    check_certificate,
    check_group,
    check_own_rack,
    check_racks,
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


@pytest.mark.parametrize(
    ("days", "level"), [(365, Level.OK), (30, Level.OK), (29, Level.WARNING), (-1, Level.WARNING)]
)
def test_a_certificate_that_ends_within_a_month_is_a_warning(days, level):
    found = PeerCertificate(("CN=broker", "CN=root"), days * DAY_MS, "TLSv1.3", "AES")
    finding = check_certificate("h:9093", found, 0)
    assert finding.level is level
    assert finding.summary == f"h:9093: TLSv1.3, CN=broker < CN=root, {days} days left"


ZONES = ("use1-az1", "use1-az2", "", "use1-az1", "use1-az3")
WHERE = "the brokers are in use1-az1, use1-az2, use1-az3; "
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.mark.parametrize("is_asked", [False, True])
@pytest.mark.parametrize("selector", ["", "org.apache.kafka.common.replica.LeaderSelector"])
def test_without_a_selector_of_replicas_reads_go_to_the_leaders(selector, is_asked):
    """It is a problem of those who ask for a rack."""
    found = check_racks(ADA, ZONES, selector, is_asked=is_asked)
    assert found.level is (Level.WARNING if is_asked else Level.OK)
    assert found.summary.startswith(f"{WHERE}reads go to the leaders")
    assert (f"'replica.selector.class={RACK_AWARE}'" in found.advice) == is_asked


def test_brokers_without_racks():
    assert check_racks(ADA, ["", ""], "", is_asked=False) == ok(
        "racks", "the brokers have no racks"
    )
    asked = check_racks(ADA, [""], RACK_AWARE, is_asked=True)
    assert asked.level is Level.WARNING
    assert "'broker.rack'" in asked.advice


def test_a_query_without_a_rack_reads_from_other_racks():
    found = check_racks(ADA, ZONES, RACK_AWARE, is_asked=False)
    assert found.level is Level.WARNING
    assert "about 2/3 of the bytes read come from other racks" in found.summary
    assert "'clientRackFrom'" in found.advice
    in_one_rack = check_racks(ADA, ["a", "a"], RACK_AWARE, is_asked=False)
    assert in_one_rack.level is Level.OK
    assert check_racks(ADA, ZONES, RACK_AWARE, is_asked=True).level is Level.OK


def test_an_unknown_selector_of_replicas_names_the_right_to_see_it():
    found = check_racks(ADA, ZONES, None, is_asked=True)
    assert found.level is Level.WARNING
    assert "DescribeConfigs on the cluster is missing" in found.summary
    assert "--allow-principal User:ada --operation DescribeConfigs --cluster" in found.advice


@pytest.mark.parametrize(
    ("rack", "racks", "advice"),
    [
        ("us-east-1a", ZONES, "clientRackFrom=aws."),
        ("use1-az1", ("us-east-1a", "us-east-1b"), "clientRackFrom=aws-zone-name."),
        ("usw2-lax1-az1", ("us-west-2-lax-1a",), "clientRackFrom=aws-zone-name."),
        ("USE1-AZ1", ZONES, "spelling must be the same."),
        ("europe-west1-b", ("europe-west1-c",), "spelling must be the same."),
    ],
)
def test_a_rack_without_brokers_is_a_warning(rack, racks, advice):
    found = check_own_rack(racks, "kafka.client.rack", rack)
    assert found.level is Level.WARNING
    assert found.summary.startswith(f"kafka.client.rack: no broker is in '{rack}', only in ")
    assert found.advice.endswith(advice)


def test_a_rack_of_brokers_is_found():
    assert check_own_rack(ZONES, "clientRackFrom=aws", "use1-az1") == ok(
        "racks", "clientRackFrom=aws: 'use1-az1', with 2 of 5 brokers"
    )


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
    """Brokers report only whether it may be described, which the right to write includes."""
    assert check_transactions(ADA, "x", frozenset({Operation.DESCRIBE})).level is Level.OK
    refused = check_transactions(ADA, "x", frozenset())
    assert refused.level is Level.ERROR
    assert "--operation Write --transactional-id x" in refused.advice
    assert check_transactions(ADA, "x", None).level is Level.WARNING
