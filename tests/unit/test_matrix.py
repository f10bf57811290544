"""The cells of the matrix."""

import re

import pytest

from verification.matrix.cells import BROKERS, OLDER_SPARKS, PYTHONS, all_cells, chosen
from verification.matrix.page import notes_of
from verification.matrix.project import ROOT, Project

PROJECT = Project.read()
CELLS = all_cells(PROJECT)


def test_each_spark_runs_with_each_python():
    pairs = {
        (one.environment.python, one.environment.spark)
        for one in CELLS
        if one.name.startswith("spark-")
    }
    sparks = (*(f"pyspark=={minor}.*" for minor in OLDER_SPARKS), "pyspark>=4.0,<5")
    assert pairs == {(python, spark) for python in PYTHONS for spark in sparks}


def test_each_broker_is_tested():
    brokers = [one for one in CELLS if one.name.startswith("kafka-")]
    assert {one.broker for one in brokers} == set(BROKERS)
    assert len({one.environment for one in brokers}) == 1


def test_the_lowest_versions_are_of_every_package():
    extras = {
        extra for one in CELLS if one.environment.is_lowest for extra in one.environment.extras
    }
    assert PROJECT.extras.keys() - extras == {"kerberos"}


def test_each_extra_is_installed_alone():
    installed = {one.environment.extras for one in CELLS if one.environment.is_of_wheel}
    alone = {(name,) for name in (*PROJECT.extras, "all") if name not in {"kerberos", "confluent"}}
    assert installed == {(), ("spark", "confluent"), *alone}


def test_each_test_of_an_extra_runs_in_a_cell():
    text = (ROOT / "tests" / "packaging" / "test_extras.py").read_text()
    named = {test.rpartition("::")[2] for cell in CELLS for test in cell.tests}
    assert {*re.findall(r"^def (test_\w+)", text, re.MULTILINE)} <= named


def test_names_are_of_one_cell():
    assert len({one.name for one in CELLS}) == len(CELLS)
    environments = {one.environment for one in CELLS}
    assert len({one.name for one in environments}) == len(environments)


def test_tests_exist():
    ids = {test for cell in CELLS for test in cell.tests if not test.startswith("-")}
    for path, _, name in (test.partition("::") for test in ids):
        assert (ROOT / path).exists(), path
        assert not name or f"def {name}(" in (ROOT / path).read_text(), name


@pytest.mark.parametrize(
    ("patterns", "count"),
    [([], len(CELLS)), (["kafka-*"], 3), (["lowest", "*-3.12"], 5), (["x"], 0)],
)
def test_cells_are_chosen_by_patterns(patterns, count):
    assert len(chosen(CELLS, patterns)) == count


def test_each_package_has_a_lower_bound_and_a_note():
    assert all(map(PROJECT.lowest, PROJECT.packages(PROJECT.extras)))
    named = {*PROJECT.dependencies, *(one for extra in PROJECT.extras.values() for one in extra)}
    assert named <= notes_of((ROOT / "pyproject.toml").read_text()).keys()
