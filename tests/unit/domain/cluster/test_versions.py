import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from pyspark_kafka.domain.cluster.finding import Environment, Level
from pyspark_kafka.domain.cluster.versions import (
    MIN_PYTHON,
    MIN_VERSIONS,
    check_environment,
)

PACKAGES = {"pyspark-kafka": "0.1.0", **MIN_VERSIONS}
HERE = Environment("3.12.1", PACKAGES)


def without(name: str) -> dict[str, str]:
    return {each: version for each, version in PACKAGES.items() if each != name}


def levels(found: Environment, client: str = "kafka-python") -> dict[str, Level]:
    checked = {each.check: each.level for each in check_environment(found, client)}
    return {check: level for check, level in checked.items() if level is not Level.OK}


def test_minimum_versions_are_those_of_the_distribution():
    project = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())["project"]
    named = chain(project["dependencies"], *project["optional-dependencies"].values())
    found = {}
    for text in named:
        if match := re.match(r"([\w-]+)>=([\d.]+)", text):
            found[match[1]] = match[2]
    assert {name: found[name] for name in MIN_VERSIONS} == dict(MIN_VERSIONS)
    assert project["requires-python"] == ">=" + ".".join(map(str, MIN_PYTHON))


@pytest.mark.parametrize(
    ("found", "client", "expected"),
    [
        (HERE, "confluent", {}),
        (Environment("3.10.9", PACKAGES), "confluent", {"python": Level.ERROR}),
        (
            Environment("3.11.0", {**PACKAGES, "pyarrow": "17.0.1", "pyspark": "4.1.0rc1"}),
            "kafka-python",
            {"pyarrow": Level.ERROR},
        ),
        (Environment("3.13", without("confluent-kafka")), "kafka-python", {}),
        (
            Environment("3.13", without("confluent-kafka")),
            "confluent",
            {"confluent-kafka": Level.ERROR},
        ),
        (Environment("3.13", without("pyspark")), "kafka-python", {"pyspark": Level.WARNING}),
        (Environment("3.13", {**PACKAGES, "pyspark": "dev"}), "", {"pyspark": Level.ERROR}),
    ],
)
def test_old_and_missing_packages_are_found(found, client, expected):
    assert levels(found, client) == expected
