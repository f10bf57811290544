import json
import os
import shlex
import subprocess
import sys

import pytest

from pyspark_kafka.adapters.spark.session import REDACTION, redaction


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        (None, "kafka.ssl.keystore.key, schema.registry.basic.auth.user.info, metadataPath"),
        ("(?i)keystore|user[.]info", "metadataPath"),
        (redaction("mine"), ""),
    ],
)
def test_secrets_that_spark_shows(pattern, shown):
    setting = "" if pattern is None else f"--conf {shlex.quote(f'{REDACTION}={pattern}')} "
    options = ("--bootstrap-servers", "127.0.0.1:1", "--master", "local[1]", "--json")
    ran = subprocess.run(
        [sys.executable, "-m", "pyspark_kafka", "doctor", *options],
        capture_output=True,
        text=True,
        check=False,
        # As from spark-submit or spark-defaults.conf.
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"{setting}pyspark-shell"},
    )
    found = {each["check"]: each for each in map(json.loads, ran.stdout.splitlines())}
    assert found["executor"]["level"] == "ok"
    finding = found["redaction"]
    assert finding["level"] == ("warning" if shown else "ok")
    assert finding["summary"].partition(" show ")[2] == shown
