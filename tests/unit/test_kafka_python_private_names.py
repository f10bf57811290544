"""The private names of kafka-python that the adapter uses: a new release may change each."""

import inspect
import re
import socket
from pathlib import Path

import kafka
import pytest
from kafka import KafkaAdminClient
from kafka.net.compat import KafkaNetClient
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaTCPTransport

import pyspark_kafka.adapters.kafka_python as adapter

ADAPTER = Path(str(adapter.__file__)).parent

PARAMETERS = {
    (KafkaAdminClient, "_find_coordinator_ids"): ["self", "keys", "key_type"],
    (KafkaConnectionManager, "_connect"): ["self", "node", "conn"],
    (KafkaConnection, "_maybe_throttle"): ["self", "response"],
    (KafkaTCPTransport, "_close"): ["self"],
    (KafkaTCPTransport, "_read_from_sock"): ["self"],
    (KafkaTCPTransport, "_sock_recv"): ["self"],
}
"""Methods, with their first parameters."""

REPLACED = {(KafkaConnectionManager, "_build_transport"): ["self", "node", "timeout_at"]}
"""Methods that the adapter replaces and does not call, with all of their parameters."""

ATTRIBUTES = {
    "_net": NetworkSelector,
    "_manager": KafkaConnectionManager,
    "_topics": set,
    "_sock": socket.socket,
}
"""Attributes, with their type where nothing is connected."""

OF_SUBCLASSES = {"_sock"}
"""Attributes that only subclasses of ours use, as ``self`` has them."""


@pytest.fixture
def owners():
    """Yield an object of kafka-python for each attribute; none is connected."""
    network = NetworkSelector()
    manager = KafkaConnectionManager(network, bootstrap_servers=["127.0.0.1:1"])
    client = KafkaNetClient(network, manager)
    with socket.socket() as unconnected:
        transport = KafkaTCPTransport(network, unconnected)
        yield {
            "_net": client,
            "_manager": client,
            "_topics": manager.cluster,
            "_sock": transport,
        }
        manager.close()
        network.close()


def _advice(name: str) -> str:
    return (
        f"kafka-python {kafka.__version__} has changed its private name {name}: see where "
        f"{ADAPTER.name} uses it, and which releases pyproject.toml allows"
    )


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_attribute_is_there(owners, name):
    value = getattr(owners[name], name, Ellipsis)
    assert value is not Ellipsis, _advice(name)
    assert isinstance(value, ATTRIBUTES[name]), _advice(name)


@pytest.mark.parametrize(
    ("owner", "name"), PARAMETERS, ids=[f"{owner.__name__}.{name}" for owner, name in PARAMETERS]
)
def test_a_method_is_there(owner, name):
    found = getattr(owner, name, None)
    assert found is not None, _advice(name)
    expected = PARAMETERS[owner, name]
    assert list(inspect.signature(found).parameters)[: len(expected)] == expected, _advice(name)


@pytest.mark.parametrize(("owner", "name"), REPLACED, ids=[name for _, name in REPLACED])
def test_a_replaced_method_is_called(owner, name):
    found = getattr(owner, name, None)
    assert found is not None, _advice(name)
    assert list(inspect.signature(found).parameters) == REPLACED[owner, name], _advice(name)
    assert f"self.{name}(" in inspect.getsource(owner), _advice(name)


def test_an_admin_client_has_the_manager():
    assert "self._manager = " in inspect.getsource(KafkaAdminClient.__init__), _advice("_manager")


def test_every_private_name_is_known_here():
    known = set(ATTRIBUTES) - OF_SUBCLASSES | {name for _, name in PARAMETERS}
    used = {
        name
        for path in ADAPTER.rglob("*.py")
        for line in path.read_text().splitlines()
        for name in re.findall(r"(?<!self)\.(_[a-z]\w*)", line)
        if "SLF001" in line or "super()" in line
    }
    assert used == known
