"""Describing topics, and what the user may do in a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ..domain.cluster.topics import Broker, TopicDescription
    from ..domain.security.rights import Operation


class ClusterDescriber(ABC):
    """Describes topics and rights, for tools.

    Every method sends new requests, changes nothing in the cluster, and blocks for at most the
    client's ``default.api.timeout.ms`` (milliseconds) per kind of request. One thread at a time may
    call it. Every method but ``close`` may raise:

    :raises BrokerUnreachableError: if no broker answered in that time.
    :raises AuthenticationError: if a login is refused; the login is not retried.
    :raises TlsError: if a TLS handshake fails.
    :raises AuthorizationError: if the user may not describe a topic or a group.
    :raises KafkaRequestError: if a broker refused the request for another reason.
    """

    @abstractmethod
    def brokers(self) -> Sequence[Broker]:
        """Return all brokers, in the order of their ids."""

    @abstractmethod
    def replica_selector(self) -> str | None:
        """Return ``replica.selector.class`` of a broker, empty if it is not set (KIP-392).

        ``None`` if the client cannot report it, or the user may not know it.
        """

    @abstractmethod
    def api_versions(self) -> Mapping[int, tuple[int, int]] | None:
        """Return the first and the last version of each API that a broker supports, by its key.

        ``None`` if the client cannot report it.
        """

    @abstractmethod
    def describe_topics(self, topics: Collection[str]) -> Mapping[str, TopicDescription]:
        """Return the description of each topic; topics that do not exist are left out.

        A size, the configuration or the rights are ``None`` if the client or the broker cannot
        report them, or the user may not know them.
        """

    @abstractmethod
    def group_operations(self, group_id: str) -> frozenset[Operation] | None:
        """Return what the user may do with a consumer group, which need not exist.

        ``None`` if the client or the broker cannot report it.
        """

    @abstractmethod
    def transactional_id_operations(self, transactional_id: str) -> frozenset[Operation] | None:
        """Return what the user may do with a transactional id, as far as brokers report it.

        No transaction is begun, and brokers report ``Write`` only when one begins. ``None`` if the
        client cannot report rights.
        """

    @abstractmethod
    def close(self) -> None:
        """Close connections and stop threads. A second call does nothing."""
