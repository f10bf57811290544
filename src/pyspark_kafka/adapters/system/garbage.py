"""What Python's garbage collector need not look at again and again."""

from __future__ import annotations

import gc


def freeze_gc() -> None:
    """Put all that is alive out of the collector's sight, for good.

    Spark's Python worker collects after every task (``pyspark/daemon.py``) and looks at all that
    was ever loaded: with numba that takes as long as all else of a small micro-batch together.
    To be called once a process: what is spared and becomes a garbage cycle later stays.
    """
    gc.collect()
    gc.freeze()
