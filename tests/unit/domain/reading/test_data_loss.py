from pathlib import Path

import pytest

from pyspark_kafka.domain.reading.data_loss import (
    added_partition_starts_late,
    earliest_offsets_not_found,
    first_batch_start_unknown,
    legacy_partition_offset_changed,
    log_truncated,
    offset_range_not_read,
    oversized_records_skipped,
    partition_offset_changed,
    partitions_deleted,
    start_offset_reset,
)
from pyspark_kafka.domain.reading.errors import DataLossError
from pyspark_kafka.domain.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)
T10 = TopicPartition("t", 10)
T2 = TopicPartition("t", 2)

GROUP_ID = (
    "Kafka option 'kafka.group.id' has been set on this query, it is\n"
    "not recommended to set this option. This option is unsafe to use since multiple concurrent\n"
    "queries or sources using the same group id will interfere with each other as they are part\n"
    "of the same consumer group. Restarted queries may also suffer interference from the\n"
    "previous run having the same group id. The user should have only one query per group id,\n"
    "and/or set the option 'kafka.session.timeout.ms' to be very small so that the Kafka\n"
    "consumers from the previous query are marked dead by the Kafka group coordinator before the\n"
    "restarted query starts running."
)


FINDINGS = [
    log_truncated(T0, 30, 20, 25),
    earliest_offsets_not_found([T10, T2, T0]),
    added_partition_starts_late(T0, 3),
    partitions_deleted([T2, T0]),
    partition_offset_changed(T0, 5, 1),
    legacy_partition_offset_changed(T0, 5, 1),
    start_offset_reset(T0, 99, 3),
    offset_range_not_read(T0, 5, 100, 42, "my-group"),
]
TEXTS = Path(__file__).with_name("findings.txt").read_text("utf-8").rstrip("\n").split("\n\n")
"""The condition, the reason and the warning of each finding, in their order."""

EACH = pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.condition)


@pytest.mark.parametrize(("finding", "text"), [*zip(FINDINGS, TEXTS, strict=True)])
def test_a_finding_has_the_jvm_connectors_words(finding, text):
    assert f"{finding.condition}\n{finding.reason}\n{finding.warning}" == text


def test_oversized_records_that_are_skipped():
    """Its warning does not advise ``failOnDataLoss``, which has no influence."""
    finding = oversized_records_skipped(T0, [3, 5], 2, "'maxRecordBytes' (9)")
    text = "Skipped 2 records of t-0 beyond the limit 'maxRecordBytes' (9), at 3, 5"
    assert (finding.condition, finding.reason) == ("OVERSIZED_RECORDS_SKIPPED", text)
    assert finding.as_warning() == (
        f"{text}. To read such records, raise the limit. To fail instead, set the source option "
        "'skipOversizedRecords' to 'false'."
    )


def test_a_first_batch_whose_start_is_unknown():
    """The error has what to do to continue, and the warning what to do next time."""
    finding = first_batch_start_unknown([T2, T0], "g")
    assert finding.reason.startswith(
        "The first batch has to run again, but where it started in Set(t-0, t-2) is unknown: "
        "consumer group 'g' has moved past its end"
    )
    assert "'failOnDataLoss' set to 'false'" in finding.reason
    assert finding.as_warning().endswith("set the option 'metadataPath'.")


def test_a_first_batch_since_a_time_whose_start_is_unknown():
    finding = first_batch_start_unknown([T0])
    assert "Set(t-0) is unknown: records before its end were deleted" in finding.reason
    assert "group" not in finding.reason


def test_partitions_deleted_under_a_group_id():
    """Deleted partitions may be another query's doing if the user chose the group id."""
    finding = partitions_deleted([T0], group_id_is_set=True)
    assert finding.condition == "PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT"
    assert finding.reason == f"Partitions Set(t-0) have been deleted.\n{GROUP_ID}"
    # Its lines begin with a space.
    assert finding.warning == "\n ".join(f"Set(t-0) are gone. {GROUP_ID}".split("\n"))


@EACH
def test_a_query_that_may_not_lose_data_fails_with_the_reason(finding):
    error = finding.as_error()
    assert isinstance(error, DataLossError)
    assert error.sub_condition == finding.condition
    assert error.message == (
        "Some data may have been lost because they are not available in Kafka any more;\n"
        "either the data was aged out by Kafka or the topic may have been deleted before all the "
        "data in the\n"
        "topic was processed.\n"
        "If you don't want your streaming query to fail on such cases, set the source option "
        "failOnDataLoss to false.\n"
        f"Reason: {finding.reason}"
    )


@EACH
def test_a_query_that_goes_on_logs_the_finding(finding):
    assert finding.as_warning() == (
        f"{finding.warning}. \n"
        "Some data may have been lost because they are not available in Kafka any more; "
        "either the\n"
        " data was aged out by Kafka or the topic may have been deleted before all the data in "
        "the\n"
        " topic was processed. If you want your streaming query to fail on such cases, set the "
        "source\n"
        ' option "failOnDataLoss" to "true".\n'
        "    "
    )
