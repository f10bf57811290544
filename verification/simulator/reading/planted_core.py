"""Faults that are planted in the rules of the client's core: which broker, when, and how long."""

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kafka import errors as kafka_errors

from pyspark_kafka.adapters import name_resolution
from pyspark_kafka.adapters.kafka_python import cluster_metadata, connecting, sockets
from pyspark_kafka.adapters.kafka_python.cluster_metadata import ClusterMetadata
from pyspark_kafka.adapters.kafka_python.connections import BrokerConnection
from pyspark_kafka.domain.cluster import backoff
from pyspark_kafka.domain.cluster.backoff import ReconnectBackoff
from pyspark_kafka.domain.cluster.broker_choice import BrokerChoice
from pyspark_kafka.domain.cluster.cluster_view import ClusterView, Leadership
from pyspark_kafka.domain.cluster.metadata_age import MetadataAge
from pyspark_kafka.domain.cluster.refusal import Refusals
from pyspark_kafka.domain.cluster.response_times import ResponseTimes
from pyspark_kafka.domain.cluster.topics_in_use import TopicsInUse

from ..engine.simulator import Change, always, nothing

_REAL: Final[Mapping[str, Any]] = {
    "resolve": name_resolution.resolve,
    "topic": cluster_metadata._topic,
    "view_of": cluster_metadata.view_of,
    "learn": BrokerChoice.learn,
    "ready": connecting._Setup.ready,
}


def _of_the_first_address(host: str, port: int, deadline: Any) -> Any:
    return _REAL["resolve"](host, port, deadline)[:1]


def _all_time_for_the_first(host: str, port: int, deadline: Any, connect: Any) -> Any:
    """Try each address until the call's deadline."""
    for address in sockets._addresses(host, port, deadline):
        try:
            return connect(address, deadline)
        except OSError:
            continue
    raise kafka_errors.KafkaConnectionError("no address answers")


def _addresses_of_before(answer: Any, earlier: Any, *rest: Any) -> Any:
    view = _REAL["view_of"](answer, earlier, *rest)
    return replace(view, brokers={**view.brokers, **earlier.brokers})


def _epochs_go_on(described: Any, version: int, earlier: Any) -> Any:
    """Take the epochs of metadata for true, whichever topic they are of."""
    known = earlier.topic(described.name).topic_id
    found = _REAL["topic"](described, version, ClusterView())
    return found if known is None else replace(found, topic_id=known)


def _without_bootstrap(self: Any) -> Any:
    return list(self._known) or list(self._servers)


def _known_forever(self: Any, found: Any) -> None:
    if not self._known:
        _REAL["learn"](self, found)


def _leader_of(self: Any, name: Any) -> int | None:
    found: Leadership | None = self.topic(name.topic).partitions.get(name.partition)
    return found and found.node


def _oldest_request_counts(self: Any) -> None:
    self.has_begun = False
    if len(self._sent) > 1:
        self._sent.pop()


def _session_from_the_answer(self: Any, host: str) -> Any:
    begun = time.monotonic()
    opened = _REAL["ready"](self, host)
    return replace(opened, expires_at=opened.expires_at + time.monotonic() - begun)


def _same_broker_for_ever(self: Any, now: float) -> None:
    self._outdated_at = now + self._max_age_s
    self._stale.clear()


def _short_fill(self: Any, view: memoryview) -> bool:
    """Take whatever comes first for the whole."""
    try:
        return bool(self._socket.recv_into(view))
    except BlockingIOError:
        return False


PLANTED_CORE: Final[Mapping[str, tuple[Change, ...]]] = {
    "the bootstrap servers are asked once": (
        Change(BrokerChoice, "candidates", property(_without_bootstrap)),
    ),
    "the first brokers are known for ever": (Change(BrokerChoice, "learn", _known_forever),),
    "a listener that closes a connection is given up": (
        Change(BrokerChoice, "closed_unanswered", always(True)),
    ),
    "only the first address of a name is tried": (
        Change(sockets, "resolve", _of_the_first_address),
    ),
    "the first address of a name gets all the time": (
        Change(sockets, "_first", _all_time_for_the_first),
    ),
    "no pause after an attempt to connect": (Change(ReconnectBackoff, "failed", nothing),),
    "pauses between attempts do not grow": (Change(backoff, "_doubled", lambda first, *_: first),),
    "leaders that were wrong are still known": (Change(MetadataAge, "invalidate", nothing),),
    "the broker that was wrong is asked again": (Change(MetadataAge, "asks", always(False)),),
    "brokers keep their first addresses": (
        Change(cluster_metadata, "view_of", _addresses_of_before),
    ),
    "a topic keeps its first id": (Change(cluster_metadata, "_topic", _epochs_go_on),),
    "a leader has no epoch": (
        Change(
            ClusterView,
            "leadership",
            lambda self, name: Leadership(
                self.topic(name.topic).partitions.get(name.partition, (None,))[0]
            ),
        ),
    ),
    "metadata are of no broker": (Change(ClusterMetadata, "source", None),),
    "the first request's time counts for all": (
        Change(ResponseTimes, "complete", _oldest_request_counts),
    ),
    "a response may take any time": (Change(ResponseTimes, "seconds_left", always(math.inf)),),
    "what came meanwhile is late": (
        Change(BrokerConnection, "is_overdue", property(lambda self: not self.seconds_left)),
    ),
    "a session begins when its login is answered": (
        Change(connecting._Setup, "ready", _session_from_the_answer),
    ),
    "a refused login is repeated": (Change(Refusals, "at", nothing),),
    "a login is never repeated": (Change(connecting, "SESSION_PART", math.inf),),
    "a reader asks for no topic": (Change(TopicsInUse, "add", nothing),),
    "metadata have no age": (Change(ClusterMetadata, "is_outdated", False),),
    "a broker that is cut off is asked again and again": (
        Change(BrokerChoice, "ask_last", nothing),
    ),
    "leases of replicas keep metadata from another broker": (
        Change(MetadataAge, "received", _same_broker_for_ever),
    ),
    "a request in flight is never overdue": (Change(BrokerConnection, "is_overdue", False),),
    "a part of a response is taken for all": (Change(BrokerConnection, "_fill", _short_fill),),
}


FOUND_BY_CORE: Final[Mapping[str, int]] = {
    "metadata have no age": 16,
    "a broker that is cut off is asked again and again": 16,
    "leases of replicas keep metadata from another broker": 5104324,
    "a request in flight is never overdue": 73,
    "a part of a response is taken for all": 12,
    "the bootstrap servers are asked once": 5,
    "the first brokers are known for ever": 7,
    "a listener that closes a connection is given up": 122,
    "only the first address of a name is tried": 21,
    "the first address of a name gets all the time": 70,
    "no pause after an attempt to connect": 8,
    "pauses between attempts do not grow": 246,
    "leaders that were wrong are still known": 1064,
    "the broker that was wrong is asked again": 16,
    "brokers keep their first addresses": 5,
    "a topic keeps its first id": 20,
    "the first request's time counts for all": 5,
    "a response may take any time": 153,
    "what came meanwhile is late": 20,
    "a refused login is repeated": 17,
    "a login is never repeated": 10,
    "a reader asks for no topic": 2,
}
"""The seeds of schedules that find them."""
