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
    check_executors,
)

PACKAGES = {"pyspark-kafka": "0.1.0", **MIN_VERSIONS}
HERE = Environment("driver", "3.12.1", PACKAGES)


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
        (Environment("h", "3.10.9", PACKAGES), "confluent", {"python": Level.ERROR}),
        (
            Environment("h", "3.11.0", {**PACKAGES, "pyarrow": "17.0.1", "pyspark": "4.1.0rc1"}),
            "kafka-python",
            {"pyarrow": Level.ERROR},
        ),
        (Environment("h", "3.13", without("confluent-kafka")), "kafka-python", {}),
        (
            Environment("h", "3.13", without("confluent-kafka")),
            "confluent",
            {"confluent-kafka": Level.ERROR},
        ),
        (Environment("h", "3.13", without("pyspark")), "kafka-python", {"pyspark": Level.WARNING}),
        (Environment("h", "3.13", {**PACKAGES, "pyspark": "dev"}), "", {"pyspark": Level.ERROR}),
    ],
)
def test_old_and_missing_packages_are_found(found, client, expected):
    assert levels(found, client) == expected


def test_an_executor_like_the_driver():
    """An executor is shown with its versions; patch releases of Python may differ."""
    (found,) = check_executors(HERE, [Environment("w1", "3.12.9", PACKAGES)])
    assert found.level is Level.OK
    assert found.summary.startswith("w1: Python 3.12.9, confluent-kafka 2.15.1, ")


def test_an_executor_with_other_packages_stops_a_query():
    other = Environment(
        "w1", "3.11.1", {**without("confluent-kafka"), "pyspark-kafka": "0.0.9", "pyarrow": "20.0"}
    )
    found = [(each.level, each.summary) for each in check_executors(HERE, [other])]
    assert found == [
        (Level.ERROR, "w1 has Python 3.11.1, and the driver has 3.12.1"),
        (Level.ERROR, "w1 has pyspark-kafka 0.0.9, and the driver has 0.1.0"),
        (Level.WARNING, "w1 has pyarrow 20.0, and the driver has 18.0"),
        (Level.ERROR, "w1 has confluent-kafka none, and the driver has 2.15.1"),
    ]


def test_a_package_that_only_executors_have():
    here = Environment("driver", "3.12.1", without("confluent-kafka"))
    (found,) = check_executors(here, [Environment("w1", "3.12.1", PACKAGES)])
    assert found.level is Level.WARNING
    assert found.summary == "w1 has confluent-kafka 2.15.1, and the driver has none"
