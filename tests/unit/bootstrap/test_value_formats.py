"""Formats of values by their names."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import TYPE_CHECKING

import pytest

from pyspark_kafka.adapters import named_functions
from pyspark_kafka.bootstrap import plugins
from pyspark_kafka.bootstrap.plugins import FORMAT_GROUP, PluginError, value_format_named
from pyspark_kafka.domain.errors import OptionsError
from tests.line_values import VALUE_FORMAT

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what installs entry points for a test."""

    def add(*values: str) -> None:
        points = EntryPoints(EntryPoint("line", value, FORMAT_GROUP) for value in values)
        for module in (named_functions, plugins):
            monkeypatch.setattr(module, "entry_points", points.select)

    return add


def test_a_format_of_another_distribution(install: Callable[..., None]) -> None:
    """It is found by the name of its entry point, also if that is on the path twice."""
    install("tests.line_values:VALUE_FORMAT", "tests.line_values:VALUE_FORMAT")
    assert value_format_named("line") is VALUE_FORMAT


def test_a_format_that_is_not_installed(install: Callable[..., None]) -> None:
    """The error lists the known ones, and the closest."""
    install("tests.line_values:VALUE_FORMAT")
    with pytest.raises(OptionsError) as caught:
        value_format_named("avrow")
    [problem] = caught.value.problems
    assert problem == (
        "Format 'avrow' is not known. Known formats are avro, json, protobuf, line. Did you mean "
        "'avro'?"
    )
    with pytest.raises(OptionsError, match=r"protobuf, line\.$"):
        value_format_named("xml")


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (["tests.line_values:MAX_ROWS"], "it is not a ValueFormat: 8"),
        (["tests.line_values:NOTHING"], "AttributeError"),
        (["a:b", "c:d"], "'c:d' has the same name, 'line'"),
    ],
)
def test_an_unusable_entry_point(
    install: Callable[..., None], values: list[str], problem: str
) -> None:
    """The error names it."""
    install(*values)
    with pytest.raises(PluginError, match=problem):
        value_format_named("line")
