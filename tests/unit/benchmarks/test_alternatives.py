from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks.alternatives.competitors import COMPETITORS, PROJECT, Competitor, Environment
from benchmarks.alternatives.page import Size, page
from benchmarks.alternatives.rounds import Outcome, Run, run_rounds
from benchmarks.alternatives.task import COPY, READ, Order, Orders, Task, share

ROOT = Path(__file__).parents[3]
OTHERS = Environment("other", ("other==1.0",))


def competitor(name: str, *, is_ours: bool = False, share: int = 1) -> Competitor:
    environment = PROJECT if is_ours else OTHERS
    return Competitor(
        name, "quix", environment, "objects", "defaults", share=share, is_ours=is_ours
    )


OURS = competitor("Spark, kafka-python", is_ours=True)
FAST, SLOW = competitor("fast"), competitor("slow", share=20)
TASK = Task("localhost:9092", "source", "target", 8, partitions=(0, 1, 2, 3))


def written(*measured: tuple[str, int, Outcome]) -> str:
    return page(measured, (OURS, FAST, SLOW), {"cores": "2"}, Size(1_000, 3, 0.5), "the command")


def outcome(**rates: float) -> Outcome:
    names = {"ours": OURS.name}
    runs = {names.get(name, name): [Run(rate, 2.0)] for name, rate in rates.items()}
    return Outcome("100 B", runs)


def test_the_page_has_tables_settings_and_the_programs():
    text = written((READ, 100, outcome(ours=3e6, slow=1e3)), (COPY, 100, outcome(ours=1e6)))
    assert "| 100 B | Spark, kafka-python | 3,000,000 |  | 300 |" in text
    assert "## Copying a topic" in text
    assert "| slow | defaults | objects | `other==1.0` | 1 of 20 | 2.0 |" in text
    assert "{literalinclude} ../../benchmarks/alternatives/programs/quix.py" in text


@pytest.mark.parametrize(
    ("fast", "said"), [(4e6, "faster: fast."), (2e6, "no alternative was faster.")]
)
def test_the_page_names_who_is_faster(fast, said):
    text = written((READ, 100, outcome(ours=3e6, fast=fast)))
    assert f"100 B, beside this library in Spark (Spark, kafka-python): {said}" in text


@pytest.mark.parametrize(("load", "is_busy"), [(0.5, False), (9.5, True)])
def test_the_page_says_that_the_machine_was_busy(load, is_busy):
    text = page([(READ, 100, outcome(ours=3e6))], (OURS,), {}, Size(1_000, 1, load), "the command")
    assert ("The machine was busy" in text) == is_busy
    assert f"| load average before the run | {load} |" in text


def test_the_page_says_why_a_competitor_has_no_figure():
    failed = outcome(ours=3e6)
    failed.failures["fast"] = "could not be installed: no `wheel`"
    text = written((READ, 100, failed))
    assert "100 B: **fast** has no figure: `could not be installed: no wheel`" in text


def test_a_competitor_that_fails_in_a_case_has_no_figure_of_it_and_goes_on_with_the_others():
    rounds: Iterator[Sequence[Run | str]] = iter(
        [[Run(1.0, 0.5), Run(2.0)], [Run(3.0, 0.5), "too slow"], [Run(5.0), Run(6.0)]]
    )
    read, copied = run_rounds(("read", "copy"), (FAST,), 3, lambda _: next(rounds))
    assert read.runs == {"fast": [Run(1.0, 0.5), Run(3.0, 0.5), Run(5.0)]}
    assert (copied.runs, copied.failures) == ({}, {"fast": "too slow"})


def test_a_competitor_that_fails_in_all_cases_is_not_run_again():
    ran = []

    def measure(one: Competitor) -> Sequence[Run | str]:
        ran.append(one.name)
        return ["too slow"] if one is SLOW else [Run(1.0)]

    run_rounds(("read",), (SLOW, FAST), 2, measure)
    assert ran == ["slow", "fast", "fast"]


def test_processes_share_the_partitions():
    shares = [share(TASK, process, 2) for process in range(2)]
    assert [(each.process, each.partitions) for each in shares] == [(0, (0, 2)), (1, (1, 3))]


def test_orders_in_json():
    orders = Orders(2, (Order(READ, TASK, TASK), Order(COPY, TASK, TASK)))
    assert Orders.from_json(orders.to_json()) == orders


@pytest.mark.parametrize("program", sorted({one.program for one in COMPETITORS}))
def test_each_competitor_has_a_program(program):
    assert (ROOT / "benchmarks" / "alternatives" / "programs" / f"{program}.py").is_file()
