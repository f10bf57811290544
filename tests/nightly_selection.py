"""Which tests run every night only, and why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_PAIRS: Final = "each value of a parameter runs with each change, and all pairs at night"
_PEER: Final = "compares with the JVM connector what has tests without Spark"

NIGHTLY: Final[Mapping[str, str]] = {
    r"packaging/test_(installed|client_of_another_distribution|older_spark|shipping)\.py": (
        "installs environments of its own; the wheel is built and checked with each change"
    ),
    r"spark/test_(pipelines|notebooks|pages)\.py": "runs what pages show, with a Spark each",
    r"memory/": "starts processes that read hundreds of megabytes",
    r"spark/test_demo\.py::test_continuous_demo": "the demo of micro-batches runs with each change",
    r"spark/test_spark_connect\.py::test_(a_session_sets|a_continuous_query|a_stream_writes)": (
        "another test writes and reads in a session of Connect"
    ),
    r"spark/test_lag\.py::test_sources_of_one": "lag is measured without Spark, too",
    r"spark/test_jobs\.py": "starts a cluster or a query for each way to fail",
    r"spark/test_kafka_source\.py::(?!test_spark_takes)": "another test reads with the source",
    r"spark/test_initial_offsets\.py::test_without_a_log": "shows what the log is for",
    r"spark/test_secured_clusters\.py::test_login\[(?!SCRAM-SHA-512-|GSSAPI-kafka)": (
        "the logins have integration tests; two run in Spark with each change"
    ),
    r"spark/test_schema_registry\.py::test_a_stream_goes_on": (
        "the registry that goes away has integration tests"
    ),
    r"integration/test_serializers\.py::(.*apicurio-2\.6|test_apicurios_serializers_for_java)": (
        "starts a registry of its own, or Java several times"
    ),
    r"contract/test_oldest_broker\.py": "has a broker and a ZooKeeper of its own",
    r"contract/test_wrong_adapters\.py": "tests the contract suites",
    r"integration/test_brokers\.py::test_two_of_three": "tests the brokers of trials",
    r"integration/test_fetching\.py::test_a_pause_of_the_caller": "waits for twenty seconds",
    **dict.fromkeys(
        (
            r"trials/",
            r"soak/test_(hostile|continuous_kills|letter_kills|kills)\.py",
            r"conformance/test_kafka_source_stress_suite\.py",
            r"spark/test_differential\.py",
        ),
        "has random seeds",
    ),
    **dict.fromkeys(
        (
            r"spark/test_continuous\.py::test_records_go_.*(python-exactly|confluent-at-least)",
            r"spark/test_errors\.py::test_a_wrong_address.*\[batch",
            r"spark/test_mistakes\.py::(test_with_spark_connect|.*-stream\])",
            r"spark/test_group_offsets\.py::test_a_new_query",
            r"spark/test_initial_offsets\.py::test_nothing_is_lost.*\[kafka-python-k",
            r"spark/test_lag\.py::test_the_command_watches_a_checkpoint\[kafka",
            r"spark/test_lag\.py::test_a_listener.*\bkafka\]",
            r"spark/test_max_partitions\.py::test_a_stream_goes_on",
            r"spark/test_offsets\.py::test_queries_resume.*\[kafka",
            r"spark/test_sink\.py::test_rows_become.*(confluent-stream|python-batch)",
            r"spark/test_sql\.py::.*\[spark",
            r"spark/test_typed_sink\.py::test_rows_are_written.*stream",
            (
                r"conformance/test_kafka_source_suite\.py::test_a_stream_starts_at.*\["
                r"(?!assign-from (earliest offsets|specific timestamps)"
                r"|.*name-from (latest|specific) offsets|.*pattern-from (earliest offsets|global))"
            ),
            (
                r"conformance/test_kafka_continuous_source_suite\.py::test_a_query_starts_at.*\["
                r"(?!assign-.*from (earliest offsets|global)|.*pattern-.*from (latest|specific))"
            ),
            r"conformance/test_data_loss_under_a_checkpoint\.py::test_a_topic_made_anew.*true",
            r"conformance/test_kafka_micro_batch_topic_changes\.py::test_available_now.*\[5",
            r"conformance/test_kafka_micro_batch_source_suite\.py::.*self_join\[true",
            r"conformance/test_kafka_relation_suite\.py::test_min_partitions.*latest",
            r"conformance/test_kafka_sink_suite\.py::test_streaming_write_to_kafka.*(column|option)",
            r"conformance/test_kafka_sink_suite\.py::test_streaming_write_of_aggregates.*update",
            r"conformance/test_kafka_sink_suite\.py::test_generic_write_big_data.*python-batch",
            r"conformance/test_kafka_source_suite\.py::test_a_starting_time.*by name",
        ),
        _PAIRS,
    ),
    **dict.fromkeys(
        (
            r"conformance/test_bad_options\.py::test_bad_options_are_refused",
            r"conformance/test_kafka_data_consumer_suite\.py::test_tasks_of_one_partition_keep",
            r"conformance/test_internal_kafka_consumer_pool_suite\.py::test_idle_clients",
            r"conformance/test_internal_kafka_producer_pool_suite\.py::test_tasks_with",
            r"conformance/test_kafka_dont_fail_on_data_loss_suite\.py::test_micro_batches",
            r"conformance/test_kafka_micro_batch_checkpoints\.py::test_(spark_22956|async)",
            r"conformance/test_kafka_micro_batch_topic_changes\.py::test_delete_a_topic",
            r"conformance/test_kafka_sink_suite\.py::test_batch_partition_column",
            r"conformance/test_kafka_micro_batch_source_suite\.py::test_(max|min)_offsets",
            r"conformance/test_kafka_micro_batch_source_suite\.py::.*_read_uncommitted",
            (
                r"conformance/test_kafka_micro_batch_topic_changes\.py"
                r"::test_(topic_level|subscrib.*deletions|spark_41375)"
            ),
            r"conformance/test_kafka_micro_batch_v2_source_suite\.py::test_min_partitions_is_supp",
        ),
        _PEER,
    ),
}
"""Patterns of tests below ``tests``, each with its reason."""

_SPARK: Final = re.compile(r"(spark|conformance)/.*[\[-]confluent\b")

BOTH_CLIENTS: Final = re.compile(
    r"spark/test_(batch\.py::test_rows_are_those"
    r"|sink\.py::test_rows_become_the_records"
    r"|continuous\.py::test_records_go_through"
    r"|secured_clusters\.py)"
)
"""Tests in Spark that run with both clients for each change; the others do so every night.

What depends on the client is tested without Spark, by the contract suites and in ``integration``.
"""


def runs_nightly(nodeid: str) -> bool:
    """Return whether a test runs every night only."""
    name = nodeid.removeprefix("tests/")
    if _SPARK.match(name) and not BOTH_CLIENTS.match(name):
        return True
    return any(re.match(pattern, name) for pattern in NIGHTLY)
