"""Which faults of the hostile soak are available."""

import pytest

from .hostile.registry import FAULTS, NEEDS, fitting
from .numbers import SoakError


def test_faults_that_need_nothing_are_left():
    """The faults whose needs are met remain."""
    fit = fitting(FAULTS, frozenset())
    assert fit
    assert not any(fault.needs for fault in fit)


def test_no_fault_is_left():
    """One line tells for each fault what it needs."""
    s3 = [fault for fault in FAULTS if fault.name == "s3 fails"]
    with pytest.raises(SoakError) as raised:
        fitting(s3, frozenset({"hdfs"}))
    assert str(raised.value) == "no fault can be had: 's3 fails' needs --storages s3"


def test_each_need_is_explained():
    """A user is told what to do about each need of a fault."""
    assert frozenset().union(*(fault.needs for fault in FAULTS)) == NEEDS.keys()
