import os

from benchmarks.fresh_process import on_all_cores, on_one_core


def test_a_process_of_one_core():
    """A function runs elsewhere, on one of the cores that there are."""
    cores = on_one_core(os.sched_getaffinity, 0)
    assert len(cores) == 1
    assert cores <= os.sched_getaffinity(0)


def test_a_process_of_all_cores():
    """A function runs elsewhere, on the cores that there are."""
    assert on_all_cores(os.getpid) != os.getpid()
    assert on_all_cores(os.sched_getaffinity, 0) == os.sched_getaffinity(0)
