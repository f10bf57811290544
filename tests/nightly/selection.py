"""Which tests run every night only, and why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NIGHTLY: Final[Mapping[str, str]] = {
    r"packaging/test_(installed|client_of_another_distribution|older_spark|shipping)\.py": (
        "installs environments of its own; the wheel is built and checked with each change"
    ),
    r"spark/test_(pipelines|notebooks|pages)\.py": "runs what pages show, with a Spark each",
    r"spark/test_demo\.py::test_continuous_demo": "the demo of micro-batches runs with each change",
    r"spark/test_(kafka_source|jobs)\.py": "starts a cluster or a query for each way to fail",
    r"spark/test_doctor\.py::test_secrets_that_spark_shows\[(?!None)": "starts a Spark for each",
    r"spark/test_secured_clusters\.py::test_login\[(?!SCRAM-SHA-512-|GSSAPI-kafka)": (
        "the logins have integration tests; two run in Spark with each change"
    ),
    r"contract/test_oldest_broker\.py": "has a broker and a ZooKeeper of its own",
    r"contract/test_wrong_adapters\.py": "tests the contract suites",
    r"trials/": "has random seeds",
    r"spark/test_differential\.py": "compares random topics with the JVM connector",
    r"soak/test_(hostile|continuous_kills|letter_kills)\.py": "has random seeds",
    r"soak/test_kills\.py::test_no_record_is_lost_or_doubled_by_a_kill": "has random seeds",
    r"conformance/test_kafka_source_stress_suite\.py": "has random seeds",
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
