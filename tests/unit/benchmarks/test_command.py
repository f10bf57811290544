from typing import Any

import pytest

from benchmarks import command
from benchmarks.command import MEASURES, parser, plan_of
from benchmarks.plan import FULL, QUICK

from .sections import RATES


def test_the_full_run():
    """Without arguments everything is measured in full."""
    chosen = parser().parse_args([])
    assert (plan_of(chosen), chosen.only) == (FULL, list(MEASURES))


def test_a_quick_run():
    """A quick run measures everything on small topics."""
    chosen = parser().parse_args(["--quick"])
    assert (plan_of(chosen), chosen.only) == (QUICK, list(MEASURES))


def test_a_part_of_a_run():
    """The measures, the rounds and the records can be chosen."""
    chosen = parser().parse_args(["--only", "batch", "--runs", "3", "--records", "1000"])
    assert chosen.only == ["batch"]
    assert (plan_of(chosen).runs, plan_of(chosen).records) == (3, 1_000)


def test_a_measurement_of_several_sections(monkeypatch):
    """Its sections come one after another, as those of several measurements."""
    bench: Any = None
    monkeypatch.setattr(
        command, "MEASURES", {"one": lambda _: RATES, "two": lambda _: (RATES, RATES)}
    )
    assert list(command._measured(bench, ["one", "two"])) == [RATES] * 3


@pytest.mark.parametrize("arguments", [["--runs", "0"], ["--records", "-1"], ["--only", "naught"]])
def test_what_cannot_be_measured(arguments, capsys):
    """A number below 1 and an unknown measure are refused."""
    with pytest.raises(SystemExit):
        parser().parse_args(arguments)
    assert "error: argument" in capsys.readouterr().err
