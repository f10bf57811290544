import subprocess
from contextlib import nullcontext
from itertools import count

import pytest

from benchmarks import command, machine

from .sections import LATENCY, ONCE, RATES

MACHINE = {"processor": "a processor", "pyspark-kafka": "commit `one`"}


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """Run three measurements without brokers, of which one can be interrupted."""
    return Benchmarks(monkeypatch, tmp_path / "parts")


class Benchmarks:
    def __init__(self, monkeypatch, parts) -> None:
        self.parts = parts
        self.machine = MACHINE
        self.interrupted: str | None = None
        self.measured: list[str] = []
        self.published: list[object] = []
        self.drawn: list[object] = []
        sections = {"rates": RATES, "two": (ONCE, RATES), "latency": LATENCY}
        measures = {name: self._measure(name, found) for name, found in sections.items()}
        began = count()
        for name, value in {
            "MEASURES": measures,
            "PARTS": parts,
            "KafkaCluster": lambda **_: nullcontext(),
            "describe_machine": lambda: self.machine,
            "now": lambda: f"time {next(began)}",
            "publish": self.published.append,
            "draw": lambda sections, _: self.drawn.extend(sections),
        }.items():
            monkeypatch.setattr(command, name, value)

    def _measure(self, name, found):
        def measure(_):
            if name == self.interrupted:
                raise KeyboardInterrupt
            self.measured.append(name)
            return found

        return measure

    def run(self, *arguments: str, interrupted: str | None = None) -> list[str]:
        """Run the command, and return what it measured."""
        self.measured.clear()
        self.interrupted = interrupted
        with pytest.raises(KeyboardInterrupt) if interrupted else nullcontext():
            command.main(arguments)
        return list(self.measured)


def test_a_whole_run_is_published(bench):
    assert bench.run("--runs", "2") == ["rates", "two", "latency"]
    [run] = bench.published
    assert run.sections == (RATES, ONCE, RATES, LATENCY)
    assert (run.plan.runs, run.machine, run.sittings) == (2, MACHINE, ("time 0",))
    assert not bench.parts.exists()


@pytest.mark.parametrize("arguments", [["--quick"], ["--only", "two"], ["--only", "two", "rates"]])
def test_a_part_of_a_run_is_neither_published_nor_kept(bench, arguments):
    assert bench.run(*arguments)
    assert bench.published == []
    assert not bench.parts.exists()


def test_a_quick_run_of_all_draws_what_it_found(bench):
    bench.run("--quick", "--only", "two")
    assert bench.drawn == []
    bench.run("--quick")
    assert bench.drawn == [RATES, ONCE, RATES, LATENCY]


def test_an_interrupted_run_goes_on_where_it_stopped(bench, capsys):
    assert bench.run(interrupted="two") == ["rates"]
    assert bench.published == []
    assert bench.run() == ["two", "latency"]
    assert capsys.readouterr().err.count(f"measured before, in {bench.parts}: rates\n") == 1
    [run] = bench.published
    assert run.sections == (RATES, ONCE, RATES, LATENCY)
    assert run.sittings == ("time 0", "time 1")
    assert bench.run() == ["rates", "two", "latency"]


def test_another_plan_starts_anew(bench):
    bench.run(interrupted="latency")
    assert bench.run("--runs", "2") == ["rates", "two", "latency"]


def test_another_commit_starts_anew(bench):
    bench.run(interrupted="latency")
    bench.machine = MACHINE | {"pyspark-kafka": "commit `two`"}
    assert bench.run() == ["rates", "two", "latency"]
    assert bench.published[0].sittings == ("time 1",)


@pytest.mark.parametrize("damage", [lambda text: text[:-9], lambda _: "[]", lambda _: "{}"])
def test_a_damaged_file_is_measured_again(bench, damage):
    bench.run(interrupted="latency")
    path = bench.parts / "two.json"
    path.write_text(damage(path.read_text()))
    assert bench.run() == ["two", "latency"]


def test_changed_code_is_another_commit(monkeypatch, tmp_path):
    def git(*arguments):
        who = ("-c", "user.name=x", "-c", "user.email=x")
        subprocess.run(("git", *who, *arguments), cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(machine, "ROOT", tmp_path)
    code = tmp_path / "src" / "code.py"
    code.parent.mkdir()
    code.touch()
    for arguments in (["init"], ["add", "."], ["commit", "-m", "x"]):
        git(*arguments)
    clean = machine.describe_commit()
    code.write_text("one")
    first = machine.describe_commit()
    assert first == machine.describe_commit()
    code.write_text("two")
    assert len({clean, first, machine.describe_commit()}) == 3
