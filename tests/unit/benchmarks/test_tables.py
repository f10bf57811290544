from dataclasses import replace

import pytest

from benchmarks.results import Comparison, Samples
from benchmarks.tables import as_markdown, as_text, figure, times

from .sections import LATENCY, ONCE, OURS, PEER, RATES


def test_a_table_in_markdown():
    assert as_markdown(RATES) == (
        "| case | client | records/s | min..max | MB/s | to peer |\n"
        "| --- | --- | ---: | ---: | ---: | ---: |\n"
        "| 100 B | peer | 200,000 | 100,000..300,000 | 20 | 1.00x |\n"
        "|  | ours | 500,000 | 400,000..600,000 | 50 | 2.50x |\n"
    )


def test_a_table_in_text():
    assert as_text(RATES).splitlines() == [
        "Rates",
        "",
        "case   client  records/s          min..max  MB/s  to peer",
        "100 B  peer      200,000  100,000..300,000    20    1.00x",
        "       ours      500,000  400,000..600,000    50    2.50x",
    ]


def test_a_single_round_has_no_extent():
    assert as_markdown(ONCE).splitlines()[-1] == "| a case | ours | 1.5 |  |"


def test_a_table_of_latencies():
    assert as_markdown(LATENCY) == (
        "| case | client | p50, ms | p90, ms | p99, ms | max, ms | p50, min..max | p50 to peer |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| 100 records/s | peer | 3 | 4 | 8 | 45 | 2..4 | 1.00x |\n"
        "|  | ours | 1.5 | 2 | 3 | 4 | 1.5..1.5 | 2.00x |\n"
    )


def test_each_case_has_its_own_peer():
    slow = Comparison("slow", (Samples("peer", (1.0,)), Samples("ours", (3.0,))))
    section = replace(RATES, comparisons=(Comparison("fast", (PEER, OURS)), slow))
    ratios = [line.split()[-1] for line in as_text(section).splitlines()[3:]]
    assert ratios == ["1.00x", "2.50x", "1.00x", "3.00x"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.01234, "0.0123"),
        (1.5, "1.5"),
        (99.44, "99.4"),
        (99.96, "100"),
        (100.4, "100"),
        (1_234_567.8, "1,234,568"),
    ],
)
def test_a_figure(value, text):
    assert figure(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.00123, "0.0012x"), (0.1, "0.10x"), (1.0, "1.00x"), (12.345, "12.35x"), (1e3, "1,000.00x")],
)
def test_a_ratio(ratio, text):
    assert times(ratio) == text
