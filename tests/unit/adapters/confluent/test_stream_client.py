"""The pipe that ends a wait from other threads."""

import os

import pytest

from pyspark_kafka.adapters.confluent.stream_client import WakePipe


def test_a_closed_pipe_writes_to_no_other_file():
    """A transaction may end after its client was closed, when another file has the number."""
    pipe = WakePipe()
    pipe.close()
    source, sink = os.pipe()
    try:
        os.set_blocking(source, False)
        assert sink == pipe.file
        pipe.set()
        with pytest.raises(BlockingIOError):
            os.read(source, 1)
    finally:
        os.close(source)
        os.close(sink)
