"""Counting the threads, sockets and files of this process."""

import socket
import sys
import threading
from contextlib import ExitStack

import pytest

from pyspark_kafka.testing import await_until
from verification.soak.hostile.resources import Resources

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about processes")


def test_what_is_more(tmp_path):
    path = tmp_path / "file-of-a-test"
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait, name="thread of a test")
    before = Resources.count()
    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listener.getsockname()[1]
        opened.enter_context(socket.create_connection(("127.0.0.1", port)))
        opened.enter_context(listener.accept()[0])
        opened.enter_context(path.open("w"))
        thread.start()
        opened.callback(thread.join)
        opened.callback(ends.set)
        more = Resources.count()
        assert more.beyond(before) == {
            "thread thread of a test": 1,
            f"socket listening at {port}": 1,
            f"socket to {port}": 1,
            f"socket accepted at {port}": 1,
            f"file {path}": 1,
        }
        assert f"socket to {port}" not in more.without_peers([port]).beyond(before)
        assert before.beyond(more) == {}
        assert more.beyond(before, {f"file {path}": 1}).keys() == more.beyond(before).keys() - {
            f"file {path}"
        }
    # A thread has a task of Linux for a moment after `join` has returned.
    await_until(lambda: not Resources.count().beyond(before))
