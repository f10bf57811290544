import os
import weakref

import pytest

from pyspark_kafka.adapters.process_local import ProcessLocal


class Client:
    """An object that can be watched."""


def test_a_value_is_there_until_it_is_removed():
    local: ProcessLocal[str] = ProcessLocal()
    assert local.get() is None
    assert local.set("a") == "a"
    assert local.get() == "a"
    assert local.pop() == "a"
    assert local.pop() is None


def test_a_fork_has_no_value_of_its_parent(monkeypatch):
    """A child keeps a value of its own, and does not drop the parent's, which would close it."""
    client = Client()
    watched = weakref.ref(client)
    local = ProcessLocal(client)
    del client
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert local.get() is None
    assert watched() is not None
    own = local.set(Client())
    assert local.get() is own
    assert local.pop() is own


@pytest.mark.parametrize("method", ["pop", "set"])
def test_a_fork_closes_nothing_of_its_parent(method, monkeypatch):
    client = Client()
    watched = weakref.ref(client)
    local = ProcessLocal(client)
    del client
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert (local.pop() if method == "pop" else local.set(Client())) is not watched()
    assert watched() is not None
