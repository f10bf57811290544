import pytest

from benchmarks.costs import Cost, cores_for_a_gigabyte
from benchmarks.processor_time import Group


def seconds(driver=0.0, executors=0.0, workers=0.0, brokers=0.0):
    return dict(zip(Group, (driver, executors, workers, brokers), strict=True))


COST = Cost(
    "ours",
    nearly_empty=(seconds(0.5, 0.25, 0.25), seconds(0.25, 0.25, 0.25), seconds(4.0, 0.25, 0.25)),
    full=(
        seconds(0.5, 2.25, 1.25, 1.0),
        seconds(0.5, 2.25, 3.25, 2.0),
        seconds(9.5, 2.25, 2.25, 6.0),
    ),
    more_records=2_000_000,
)


def test_the_cost_of_a_query_is_fixed_and_of_each_record():
    assert COST.fixed == 1.0
    assert COST.per_million == {Group.EXECUTORS: 1.0, Group.WORKERS: 1.0, Group.BROKERS: 1.0}


def test_the_cost_of_records_is_of_each_round_and_without_the_driver():
    samples = COST.per_million_in_all
    assert (samples.min, samples.median, samples.max) == (2.0, 3.5, 5.0)


@pytest.mark.parametrize(("value_bytes", "millions"), [(100, 10), (1_000, 1)])
def test_the_cores_of_a_gigabyte_per_second(value_bytes, millions):
    cores = cores_for_a_gigabyte(seconds(0.0, 0.25, 0.5, 0.125), value_bytes)
    assert cores == seconds(0.0, 0.25 * millions, 0.5 * millions, 0.125 * millions)
