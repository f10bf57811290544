"""Checks of this process, the network and the cluster, one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, final

from ...domain.cluster.finding import (
    Finding,
    Level,
    Principal,
    check_apis,
    check_certificate,
    check_group,
    check_own_rack,
    check_racks,
    check_topic,
    check_transactions,
    error,
    no_own_rack,
    ok,
    warning,
)
from ...domain.cluster.versions import check_environment
from ...domain.errors import PysparkKafkaError
from ...domain.options.option import PREFIX, server_list
from ...domain.options.servers import server_address
from ...domain.options.settings_table import CLIENT_RACK
from ...domain.reading.racks import RackNotFoundError
from ...domain.security.errors import AuthorizationError, TlsFailure, tls_failure
from ...domain.text import describe_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ...domain.cluster.finding import Environment, PeerCertificate
    from ...domain.options.source import SourceOptions
    from ...ports.clock import Clock
    from ...ports.cluster import ClusterDescriber

_LISTENERS: Final = (
    "Check 'kafka.bootstrap.servers' and the brokers' advertised listeners: this machine must "
    "reach each of them."
)

_HANGUP: Final = f"{TlsFailure.NOT_TLS.value} {TlsFailure.HANDSHAKE_FAILED.value}"
"""A broker that expects no TLS hangs up without giving a reason."""


class Network(Protocol):
    """The network, for checks of an address; every method may raise ``OSError``."""

    def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of a name."""

    def connect(self, host: str, port: int) -> None:
        """Connect, and close the connection."""

    def handshake(self, host: str, port: int) -> PeerCertificate:
        """Connect with TLS as a client does, and return what the broker presents."""


@final
@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of the cluster that a query uses."""

    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything outside of the cluster.

    ``java`` returns its path, or raises if there is none that Spark can use. ``rack`` returns the
    rack of this host, where ``clientRackFrom`` looks for it.
    """

    environment: Environment
    network: Network
    clock: Clock
    java: Callable[[], str]
    rack: Callable[[], str]


@final
class Doctor:
    """Yields findings as they are made. A failed check skips only what depends on it."""

    def __init__(
        self,
        options: SourceOptions,
        resources: Resources,
        surroundings: Surroundings,
        describer: Callable[[], ClusterDescriber],
    ) -> None:
        """Take a factory of the describer, which connects at its first use."""
        self._client = options.client
        self._servers = options.bootstrap_servers
        self._java = options.java
        self._client_rack = dict(options.kafka).get(CLIENT_RACK)
        self._rack_place = options.client_rack_from
        self._principal = Principal(self._java.principal, self._servers)
        self._resources = resources
        self._here = surroundings
        self._describer = describer

    def examine(self) -> Iterator[Finding]:
        """Yield the findings, in the order in which a query would meet them."""
        yield from check_environment(self._here.environment, self._client)
        if "pyspark" in self._here.environment.packages:
            yield self._spark_java()
        servers = map(server_address, server_list(self._servers))
        bootstrap = [address for address in servers if address]
        found = []
        for host, port in bootstrap:
            for finding in self._address(host, port):
                found.append(finding)
                yield finding
        if any(each.check == "tcp" and each.level is Level.OK for each in found):
            yield from self._guarded("login", self._cluster(frozenset(bootstrap)))
        else:
            advice = "Correct what is wrong with the network first."
            yield error("login", "was not tried: no broker can be reached", advice)

    def _spark_java(self) -> Finding:
        try:
            return ok("java", self._here.java())
        except PysparkKafkaError as reason:
            return warning("java", describe_error(reason), "Only Spark Connect works without Java.")

    def _address(self, host: str, port: int) -> Iterator[Finding]:
        """Yield the findings for a name, its port and its certificate."""
        place = f"{host}:{port}"
        try:
            addresses = self._here.network.resolve(host)
        except OSError as reason:
            yield error("dns", f"{host}: {describe_error(reason)}", "Check the name and the DNS.")
            return
        yield ok("dns", f"{host}: {', '.join(addresses)}")
        try:
            self._here.network.connect(host, port)
        except OSError as reason:
            yield error("tcp", f"{place}: {describe_error(reason)}", _LISTENERS)
            return
        yield ok("tcp", place)
        if self._java.tls is not None:
            yield self._tls(host, port)

    def _tls(self, host: str, port: int) -> Finding:
        place = f"{host}:{port}"
        try:
            found = self._here.network.handshake(host, port)
        except (OSError, ValueError, PysparkKafkaError) as reason:
            text = describe_error(reason)
            failure = tls_failure(text) or TlsFailure.HANDSHAKE_FAILED
            advice = _HANGUP if failure is TlsFailure.HANDSHAKE_FAILED else failure.value
            return error("tls", f"{place}: {text}", advice)
        return check_certificate(place, found, self._here.clock.now_ms())

    def _cluster(self, bootstrap: frozenset[tuple[str, int]]) -> Iterator[Finding]:
        describer = self._describer()
        brokers = describer.brokers()
        login = self._java.login
        how = f"{self._java.protocol} by {login.mechanism}" if login else self._java.protocol
        yield ok("login", f"{how}, {self._principal.name or 'a user that only the brokers know'}")
        yield ok("cluster", f"{len(brokers)} broker{'' if len(brokers) == 1 else 's'}")
        for broker in brokers:
            if (broker.host, broker.port) not in bootstrap:
                yield from self._address(broker.host, broker.port)
        yield from self._guarded("racks", self._racks(describer, [each.rack for each in brokers]))
        yield from check_apis(describer.api_versions())
        for topic in self._resources.topics:
            yield from self._guarded("topic", self._topic(describer, topic))
        for group_id in self._resources.groups:
            yield from self._guarded("rights", self._group(describer, group_id))
        for each in self._resources.transactional_ids:
            yield from self._guarded("rights", self._transactional_id(describer, each))

    def _racks(self, describer: ClusterDescriber, racks: Sequence[str]) -> Iterator[Finding]:
        selector = describer.replica_selector() if any(racks) else ""
        is_asked = self._client_rack is not None or self._rack_place is not None
        yield check_racks(self._principal, racks, selector, is_asked=is_asked)
        if is_asked and any(racks):
            yield self._own_rack(racks)

    def _own_rack(self, racks: Sequence[str]) -> Finding:
        if self._client_rack is not None:
            return check_own_rack(racks, f"{PREFIX}{CLIENT_RACK}", self._client_rack)
        option = f"clientRackFrom={self._rack_place}"
        try:
            return check_own_rack(racks, option, self._here.rack())
        except RackNotFoundError as reason:
            return no_own_rack(option, str(reason))

    def _topic(self, describer: ClusterDescriber, topic: str) -> Iterator[Finding]:
        try:
            described = describer.describe_topics([topic]).get(topic)
        except AuthorizationError:
            yield from check_topic(self._principal, topic, frozenset())
            return
        if described is None:
            yield error("topic", f"'{topic}' does not exist", "Create it, or correct the name.")
            return
        without = sum(each.leader is None for each in described.partitions.values())
        count = len(described.partitions)
        if without:
            summary = f"'{topic}': {without} of {count} partitions have no leader"
            yield error("topic", summary, "Ask the cluster's operator to start its brokers.")
        else:
            yield ok("topic", f"'{topic}': {count} partition{'' if count == 1 else 's'}")
        yield from check_topic(self._principal, topic, described.operations)

    def _group(self, describer: ClusterDescriber, group_id: str) -> Iterator[Finding]:
        try:
            allowed = describer.group_operations(group_id)
        except AuthorizationError:
            allowed = frozenset()
        yield check_group(self._principal, group_id, allowed)

    def _transactional_id(
        self, describer: ClusterDescriber, transactional_id: str
    ) -> Iterator[Finding]:
        allowed = describer.transactional_id_operations(transactional_id)
        yield check_transactions(self._principal, transactional_id, allowed)

    def _guarded(self, check: str, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Yield findings; an error of this library is one, too, and ends them."""
        try:
            yield from findings
        except PysparkKafkaError as reason:
            yield error(check, describe_error(reason), f"Who can fix it: {reason.fault.value}.")
