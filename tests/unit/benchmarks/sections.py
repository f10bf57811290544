"""Sections for tests to print."""

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

PEER = Samples("peer", (100_000.0, 300_000.0, 200_000.0))
OURS = Samples("ours", (400_000.0, 500_000.0, 600_000.0))

RATES = Section(
    name="rates",
    title="Rates",
    about="How fast.",
    unit=RECORDS_PER_SECOND,
    comparisons=(Comparison("100 B", (PEER, OURS), bytes_per_record=100),),
    peers=("peer",),
)

ONCE = Section(
    name="once",
    title="Once",
    about="How long.",
    unit=MILLISECONDS,
    comparisons=(Comparison("a case", (Samples("ours", (1.5,)),)),),
)

LATENCY = LatencySection(
    name="latency",
    title="Latency",
    about="How late.",
    comparisons=(
        LatencyComparison(
            "100 records/s",
            (
                Latencies("peer", (Percentiles(4, 5, 6, 70), Percentiles(2, 3, 10, 20))),
                Latencies("ours", (Percentiles(1.5, 2, 3, 4), Percentiles(1.5, 2, 3, 4))),
            ),
        ),
    ),
    peers=("peer",),
    is_plotted=True,
)
