from hypothesis import given
from hypothesis import strategies as st

from benchmarks.plan import Plan
from benchmarks.results import (
    Comparison,
    Latencies,
    LatencyComparison,
    LatencySection,
    Percentiles,
    Samples,
    Section,
    Unit,
)
from benchmarks.run import Run

TEXT = st.text(max_size=5)
FIGURE = st.floats(allow_nan=False, allow_infinity=False)


def tuples(elements, min_size=0):
    return st.lists(elements, min_size=min_size, max_size=2).map(tuple)


def samples_of(competitor):
    return st.builds(Samples, competitor, tuples(FIGURE, min_size=1))


def section_with(peers):
    samples = st.tuples(*(samples_of(st.just(peer)) for peer in peers), samples_of(TEXT))
    return st.builds(
        Section,
        *(TEXT, TEXT, TEXT),
        st.builds(Unit, TEXT, st.booleans()),
        tuples(st.builds(Comparison, TEXT, samples, st.none() | FIGURE)),
        peers=st.just(peers),
        limit=st.none() | TEXT,
    )


SECTION = tuples(TEXT).flatmap(section_with)
PERCENTILES = st.builds(Percentiles, *(FIGURE, FIGURE, FIGURE, FIGURE))
LATENCY_SECTION = st.builds(
    LatencySection,
    *(TEXT, TEXT, TEXT),
    tuples(
        st.builds(
            LatencyComparison,
            TEXT,
            tuples(st.builds(Latencies, TEXT, tuples(PERCENTILES, min_size=1))),
        )
    ),
    peers=tuples(TEXT),
    is_plotted=st.booleans(),
)
RUN = st.builds(
    Run,
    TEXT,
    st.builds(Plan, runs=st.integers(1, 9), wide_topics=tuples(st.tuples(st.integers()))),
    st.dictionaries(TEXT, TEXT, max_size=2),
    tuples(TEXT),
    tuples(SECTION | LATENCY_SECTION),
)


@given(RUN)
def test_a_run_is_the_same_after_json(run):
    assert Run.from_json(run.to_json()) == run
