from dataclasses import replace

import pytest

from benchmarks.page import page
from benchmarks.plan import FULL
from benchmarks.quotes import readme_table
from benchmarks.results import (
    MILLISECONDS,
    RECORDS_PER_SECOND,
    Comparison,
    Latencies,
    LatencyComparison,
    LatencySection,
    Percentiles,
    Samples,
    Section,
)
from benchmarks.run import Run


def comparison(case: str, **medians: float) -> Comparison:
    names = {"jvm": "JVM connector", "tuned": "JVM connector, tuned", "kafka": "kafka-python"}
    return Comparison(
        case, tuple(Samples(names.get(one, one), (of,)) for one, of in medians.items())
    )


WRITES = Section(
    "write",
    "Writes",
    "How fast.",
    RECORDS_PER_SECOND,
    (
        comparison("100 B", jvm=10.0, tuned=20.0, kafka=21.0, confluent=19.0, limit=40.0),
        comparison("1 kB", jvm=10.0, tuned=20.0, kafka=20.0, confluent=19.95, limit=40.0),
    ),
    peers=("JVM connector", "JVM connector, tuned", "limit"),
    limit="limit",
)
WIDE = Section(
    "wide",
    "Wide",
    "How long.",
    MILLISECONDS,
    tuple(
        comparison(f"{topic}; {kind}", tuned=6.0, kafka=8.0, confluent=4.0)
        for topic in ("200 partitions of 50 records", "1,000 partitions of 10 records")
        for kind in ("batch", "trigger")
    ),
)
CONTINUOUS = LatencySection(
    "continuous",
    "Continuous",
    "How late.",
    tuple(
        LatencyComparison(
            f"{rate} records/s, 1 partition",
            (
                Latencies("JVM, real-time", (Percentiles(4, 5, 6, 7),)),
                Latencies("kafka-python", (Percentiles(2, 3, 8, 9),)),
                Latencies("confluent", (Percentiles(1, 2, 3, 4),)),
            ),
        )
        for rate in ("100", "1,000")
    ),
    peers=("JVM, real-time",),
)
RUN = Run("make bench", FULL, {"processor": "A processor"}, ("today",), (WRITES, CONTINUOUS, WIDE))


def test_the_page_begins_with_where_a_client_is_slower():
    """Other than the limit, and as ratios are shown: 19.95 of 20 is 1.00."""
    section = page(RUN).split("## ")[2]
    assert section.startswith("Where it is slower")
    assert [line for line in section.splitlines() if line.startswith("|")] == [
        "| measurement | case | peer | kafka-python | confluent |",
        "| --- | --- | --- | ---: | ---: |",
        "| Writes | 100 B | JVM connector, tuned | 1.05x | **0.95x** |",
        "| Continuous | 100 records/s, 1 partition; p99 | JVM, real-time | **0.75x** | 2.00x |",
        "| Continuous | 1,000 records/s, 1 partition; p99 | JVM, real-time | **0.75x** | 2.00x |",
    ]


@pytest.mark.parametrize("sittings", [(), ("today",)])
def test_a_run_without_interruption(sittings):
    assert "sittings" not in page(replace(RUN, sittings=sittings))


def test_a_run_with_an_interruption():
    text = page(replace(RUN, sittings=("today", "tomorrow")))
    assert "The run was made in 2 sittings." in text


def test_the_table_of_the_readme():
    """It has no row of a section that the run does not have, and no cell of a missing peer."""
    lines = readme_table(RUN).splitlines()
    assert lines[0] == "| Spark | JVM connector | tuned | `kafka-python` | `confluent` |"
    assert [lines[row] for row in (2, 4, 5, 8)] == [
        "| batch, writes 100 B, records/s | 10 | 20 | 21: 2.10x (1.05x) | 19: 1.90x (**0.95x**) |",
        "| continuous, 100 records/s (JVM: real-time): p50, ms | 4 |  | 2: 2.00x | 1: 4.00x |",
        "| continuous, 100 records/s (JVM: real-time): p99, ms | 6 |  | 8: **0.75x** | 3: 2.00x |",
        "| batch, 200 partitions of 50 records, ms |  | 6 | 8: (**0.75x**) | 4: (1.50x) |",
    ]
    assert len(lines) == 14
    assert lines[-1] == "Medians of 5 rounds on A processor."
