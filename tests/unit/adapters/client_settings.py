"""Settings of a Java client as those of each client."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from pyspark_kafka.adapters.confluent import settings as confluent_settings
from pyspark_kafka.adapters.kafka_python import settings as kafka_python_settings
from pyspark_kafka.domain.errors import OptionsError
from pyspark_kafka.domain.options.client_settings import read_java_settings
from pyspark_kafka.domain.options.settings_table import KAFKA_PYTHON

from .conftest import PASSWORD

SERVERS: Final = {"bootstrap.servers": "127.0.0.1:1"}
KERBEROS: Final = "com.sun.security.auth.module.Krb5LoginModule"


def confluent_config(settings: dict[str, str]) -> dict[str, str]:
    """Return librdkafka's settings."""
    return confluent_settings.client_config(read_java_settings(settings))


def kafka_python_config(settings: dict[str, str]) -> dict[str, Any]:
    """Return kafka-python's settings."""
    return kafka_python_settings.client_settings(read_java_settings(settings, KAFKA_PYTHON))[0]


def problems_of(client_config: Callable[..., object], settings: dict[str, str]) -> tuple[str, ...]:
    """Return the problems that a client has with settings."""
    with pytest.raises(OptionsError) as caught:
        client_config(SERVERS | settings)
    return caught.value.problems


def pairs_of(text: str, parse: Callable[[str], Any] = str) -> dict[str, Any]:
    """Return the names and values of a line such as ``a=1 b=2``."""
    return {name: parse(value) for name, _, value in (one.partition("=") for one in text.split())}


def translations(library: str) -> list[Any]:
    """Return a setting's name, its value, and what they become, for each line of the table.

    The columns of ``client_settings.txt`` are Java's, librdkafka's and kafka-python's.
    """
    column = ["librdkafka", "kafka-python"].index(library)
    parse = ast.literal_eval if column else str
    lines = (Path(__file__).parent / "client_settings.txt").read_text().splitlines()
    rows = []
    for setting, *made in (map(str.strip, line.split("|")) for line in lines):
        if made[column] != "-":
            rows.append((*setting.split("="), pairs_of(made[column], parse)))
    return rows


def ssl_settings(stores: Path, suffix: str = "p12") -> dict[str, str]:
    """Return the settings of a keystore and a truststore."""
    return {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(stores / f"trust.{suffix}"),
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.location": str(stores / f"key.{suffix}"),
        "ssl.keystore.password": PASSWORD,
    }
