"""Settings of a topic that change while records are written."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol

from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.admin import DescribeConfigsRequest

from pyspark_kafka.brokers import KafkaCluster
from pyspark_kafka.brokers.admin import _ask, admin_client
from tests.slowness import bound_s

from ..numbers import SoakError

_ADMIN_S: Final = bound_s(30)
_SOURCES_VERSION: Final = 1
_OF_TOPIC: Final = 1
"""The source of a setting that a topic has itself (DYNAMIC_TOPIC_CONFIG)."""


class AwaitsEvents(Protocol):
    """A function that waits until something has happened, such as ``Arena.await_event``."""

    def __call__(self, happened: Callable[[], bool], what: str) -> None:
        """Raise ``SoakError`` if it does not happen in time."""


@contextmanager
def topic_configured(
    cluster: KafkaCluster, topic: str, config: Mapping[str, str], await_event: AwaitsEvents
) -> Iterator[None]:
    """Set settings of a topic until the block ends; afterwards no broker acts on them.

    Only the last setting may still be in use. A broker returns a setting before it applies it, and
    applies changes one after another: when it returns that the second setting is reset, it has
    applied the reset of the first.
    """
    try:
        # A request that times out may be carried out, too.
        _change(cluster, "alter_configs", topic, config)
        yield
    finally:
        for name in config:
            _reset(cluster, topic, name, await_event)


def is_set(port: int, topic: str, name: str) -> bool:
    """Return whether a topic has a setting itself, as the broker at a port knows it."""
    request = DescribeConfigsRequest(
        resources=[(ConfigResourceType.TOPIC, topic, [name])],
        include_synonyms=False,
        include_documentation=False,
        version=_SOURCES_VERSION,
    )
    [answer] = _ask(port, request).results
    if answer.error_code:
        raise SoakError(f"{name} of {topic} is unknown: {answer.error_message}")
    return any(found.config_source == _OF_TOPIC for found in answer.configs)


def _reset(cluster: KafkaCluster, topic: str, name: str, await_event: AwaitsEvents) -> None:
    _change(cluster, "reset_configs", topic, {name: ""})

    def is_reset() -> bool:
        return cluster._everywhere(lambda port: not is_set(port, topic, name))

    await_event(is_reset, f"reset of {name} on all brokers")


def _change(cluster: KafkaCluster, method: str, topic: str, config: Mapping[str, str]) -> None:
    """Change settings; unlike the admin client, do not ignore what brokers answer."""
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(config))
    with admin_client(cluster.bootstrap_servers, "settings of a topic", _ADMIN_S) as admin:
        told: dict[str, Any] = getattr(admin, method)([resource], incremental=True)
    if told != {"topic": {topic: "OK"}}:
        raise SoakError(f"{sorted(config)} of {topic} are not changed: {told}")
