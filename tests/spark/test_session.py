"""Sessions with performance settings."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_kafka.adapters.spark.spark_api import HAS_UNIX_SOCKETS

PROGRAM = Path(__file__).parent / "programs" / "start_sessions.py"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Run the program in a new process: a JVM's settings are fixed at its start."""
    # As in a YARN container, longer than the path of a Unix socket can be.
    directory = tmp_path_factory.mktemp("usercache") / ("container_" * 12)
    directory.mkdir()
    arguments = (
        f"--driver-java-options -Djava.io.tmpdir={directory} "
        "--conf spark.redaction.regex=mine --conf spark.buffer.size=131072"
    )
    ran = subprocess.run(
        [sys.executable, PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env={
            **os.environ,
            "PYSPARK_KAFKA_DISALLOWED_OPTIONS": "acks",
            # As from spark-submit or spark-defaults.conf.
            "PYSPARK_SUBMIT_ARGS": f"{arguments} pyspark-shell",
            # Of the processes that plan queries: the JVM is started before ``session`` is called.
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        },
    )
    return json.loads(ran.stdout.splitlines()[-1])


def test_performance_settings_are_set(found):
    expected = ("true", "/tmp") if HAS_UNIX_SOCKETS else (None, None)  # noqa: S108
    assert (found["sockets"], found["socket directory"]) == expected
    assert found["warnings"] == []


def test_settings_of_spark_submit_are_kept(found):
    assert found["buffer"] == "131072"


@pytest.mark.parametrize(
    "name",
    [
        "mine",
        "kafka.sasl.jaas.config",
        "kafka.ssl.keystore.key",
        "kafka.ssl_key_pem",
        "my.Secret",
        "accesskey",
    ],
)
def test_secrets_are_hidden_as_well_as_what_the_user_hides(found, name):
    assert re.search("mine", found["redaction"])
    assert re.search(found["redaction"], name)


def test_workers_are_this_python_with_the_kernels_loaded(found):
    assert found["python"]
    assert found["kernels"]
    assert found["spared"]


def test_an_existing_session_is_reused_with_a_warning(found):
    assert found["same"]
    [late] = found["late"]
    assert late.startswith("Reusing an existing session, which lacks spark.")
    assert "spark.buffer.size" not in late


def test_a_query_sets_nothing_that_the_environment_of_spark_forbids(found):
    place = "PYSPARK_KAFKA_DISALLOWED_OPTIONS"
    words = f"The Kafka option 'kafka.acks' is not allowed because it is listed in {place}."
    assert words in found["refused"]
    assert words in found["refused later"]


def test_a_query_sets_nothing_that_a_setting_of_spark_forbids(found):
    place = "spark.sql.kafka.disallowedOptions"
    words = f"The Kafka option 'kafka.linger.ms' is not allowed because it is listed in {place}."
    assert words in found["registered"]
    assert found["unregistered"] == ""


def test_a_query_sets_what_the_application_of_spark_allows(found):
    assert "'kafka.sasl.kerberos.kinit.cmd' is refused" in found["not allowed"]
    assert "'kafka.plugin.library.paths' is refused" in found["partly allowed"]
    assert "kinit" not in found["partly allowed"]
