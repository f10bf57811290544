"""The cluster's metadata and connections to its brokers, by kafka-python's network classes."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from kafka import KafkaAdminClient
from kafka import TopicPartition as ClientPartition
from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from ...domain.cluster.backoff import Address, BackoffSettings, ReconnectBackoff
from ...domain.reading.leader_epochs import NO_EPOCH
from ...domain.security.rights import Operation, topic_right
from ...ports.clock import Deadline
from .connecting import ConnectionSettings
from .connecting import connect as connect_to
from .failures import RefusedError, reason_of
from .log_filter import hide_secrets
from .responses import MAX_FRAME_BYTES, check_topics, reading
from .sockets import HANGUPS
from .transports import OpenSockets, answers_without_tls, open_transport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from ...domain.security.rights import Right
    from ...domain.topic_partition import TopicPartition
    from .connections import Opened
    from .failures import ErrorMapper

_GRACE_S: Final = 0.1
_MIN_AGE_S: Final = 0.1
"""The Java client refreshes metadata no more often (``retry.backoff.ms``)."""

_REFRESH_AGAIN_S: Final = 10.0
"""When metadata that were too old and could not be refreshed are requested again."""

NO_LEADER: Final = (None, -1)
"""The leader of a partition without one."""

# All of kafka-python's clients are made here.
hide_secrets()


@final
class ConnectionManager(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's manager, which does not repeat a refused login or TLS handshake.

    3.0.12 tries again for as long as the process lives, and only logs why: "Unable to bootstrap
    from [...]" has neither the refused connection nor the failed name resolution.
    """

    _last_error: Exception | None = None

    def __init__(self, network: Any, errors: ErrorMapper, **config: Any) -> None:
        self._errors = errors
        self._open_sockets = OpenSockets()
        self._silent: set[int] = set()
        super().__init__(network, **config)
        # A broker that stalls is left before the call ends, so that another one may be asked.
        request_timeout_ms = self.config["request_timeout_ms"]
        self.config["request_timeout_ms"] = min(request_timeout_ms, errors.timeout_ms)

    def get_connection(
        self, node_id: Any, timeout_ms: float | None = None, *arguments: Any, **named: Any
    ) -> Any:
        """Return a connection, which is made within ``socket.connection.setup.timeout.ms``.

        kafka-python gives a bootstrap server all of the call's time, and none is left for others.
        """
        if node_id not in self._conns:
            self._errors.refusal.check()
        setup_ms = self.socket_connection_setup_timeout_ms(node_id)
        timeout_ms = setup_ms if timeout_ms is None else min(setup_ms, timeout_ms)
        return super().get_connection(node_id, timeout_ms, *arguments, **named)

    def least_loaded_node(self) -> Any:
        """Return a broker to ask, another than those that let a request wait until it timed out.

        kafka-python may choose the same one again and again, for as long as it is idle.
        """
        node = super().least_loaded_node()
        if node not in self._silent:
            return node
        known = {broker.node_id for broker in self.cluster.brokers()}
        others = [each for each in known - self._silent if not self.connection_delay(each)]
        if not others:
            self._silent.clear()
        return next(iter(others), node)

    def ask_others_first(self, node: int) -> None:
        """Send what any broker may answer to others than this one."""
        self._silent.add(node)

    def leave_silent(self) -> None:
        """Close all connections with a request in flight, and ask other brokers first.

        Otherwise each later request for metadata waits for the one in flight.
        """
        for connection in list(self._conns.values()):
            if connection.in_flight_requests or not connection.connected:
                connection.close(kafka_errors.RequestTimedOutError("It did not answer in time"))

    def close(self, node_id: Any = None, timeout_ms: float | None = None) -> None:
        """Close the connection to a node, or all at once: the event loop ends."""
        super().close(node_id, timeout_ms)
        if node_id is None:
            self._open_sockets.close()

    def bootstrap(self, *_arguments: Any, **_named: Any) -> None:
        """Connect to a bootstrap server before the deadline of the call.

        :raises KafkaTimeoutError: with the last reason why it could not be connected to.
        """
        with self._errors.one_deadline() as deadline:
            timeout_ms = 1_000 * deadline.remaining
            try:
                # It knows the reason if it ends by itself.
                guard = Deadline(deadline.at + _GRACE_S)
                self._net.run(self._until, guard, self.bootstrap_async, timeout_ms)
            except kafka_errors.KafkaTimeoutError as error:
                reason = str(self._last_error or error.args[0])
                raise kafka_errors.KafkaTimeoutError(reason) from self._last_error

    def run(self, coro: Any, *args: Any) -> Any:
        """Return the result of a coroutine or of a function, before the deadline of the call.

        :raises KafkaTimeoutError: if it is not done by then.
        """
        with self._errors.one_deadline() as deadline:
            return self._net.run(self._until, deadline, coro, *args)

    async def _until(self, deadline: Deadline, coro: Any, *args: Any) -> Any:
        begun = self.call_soon(coro, *args)
        return await self.wait_for(begun, math.ceil(1_000 * deadline.remaining))

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        try:
            return await open_transport(
                self._net,
                node,
                self.config,
                timeout_at,
                self._open_sockets,
                with_tls=self.ssl_enabled,
            )
        except OSError as error:
            is_hangup = self.ssl_enabled and isinstance(error, HANGUPS)
            may_be_plain = is_hangup and not self.bootstrapped
            if may_be_plain and await answers_without_tls(
                self._net, node, self.config, self._open_sockets
            ):
                raise RefusedError(self._errors.not_tls()) from error
            raise kafka_errors.KafkaConnectionError(f"Handshake failed: {error}") from error

    async def _connect(self, node: Any, conn: Any, **arguments: Any) -> None:
        lose = conn.connection_lost

        def connection_lost(error: Exception | None) -> None:
            if isinstance(error, kafka_errors.RequestTimedOutError):
                self._silent.add(node.node_id)
            lose(error and self._judge(error, is_new=not conn.init_future.is_done))

        throttle = conn._maybe_throttle  # noqa: SLF001

        def throttle_in_time(response: Any) -> None:
            # While a connection is paused, every request fails.
            if getattr(response, "throttle_time_ms", 0) > self._errors.timeout_ms:
                response.throttle_time_ms = self._errors.timeout_ms
            throttle(response)

        receive, broker = conn.data_received, f"broker {node.node_id} at {node.host}:{node.port}"

        def data_received(data: bytes) -> None:
            # Any other error would end the task that reads, and requests would wait in vain.
            with reading(broker):
                receive(data)

        # All requests of the connection fail with this error; there is no other hook.
        conn.connection_lost = connection_lost
        conn._maybe_throttle = throttle_in_time  # noqa: SLF001
        conn.data_received = data_received
        await super()._connect(node, conn, **arguments)

    def _judge(self, error: Exception, *, is_new: bool) -> Exception:
        self._last_error = error
        return self._errors.judged(error, is_new=is_new)


def connect(client: Any, config: Mapping[str, Any], errors: ErrorMapper) -> Any:
    """Return a connected ``KafkaAdminClient`` or ``KafkaConsumer``, with the settings it has.

    If that fails, 3.0.12 leaves the thread of its network client running, which tries to connect
    for as long as the process lives.
    """
    made: list[Any] = []

    def keep(**network_config: Any) -> Any:
        network = NetworkSelector(**network_config)
        # Of some settings only the manager knows.
        manager = ConnectionManager(network, errors, **{**config, **network_config})
        made.append(KafkaNetClient(network, manager))
        return made[-1]

    try:
        known = {name: config[name] for name in client.DEFAULT_CONFIG.keys() & config.keys()}
        return client(**known, kafka_client=keep)
    except BaseException:
        for network in made:
            network.close()
            network._net.stop()  # noqa: SLF001  # as KafkaAdminClient.close does
        raise


@final
class ClusterMetadata:
    """Finds leaders and connects to them, in the thread that calls.

    kafka-python's event loop runs during a call only.
    """

    def __init__(
        self, config: Mapping[str, Any], errors: ErrorMapper, *, for_writing: bool = False
    ) -> None:
        """Connect to nothing yet; ``config`` is kafka-python's, complete.

        A writer uses many topics at once, and the cluster may create those that are missing.
        """
        self._errors = errors
        config = {"receive_message_max_bytes": MAX_FRAME_BYTES, **config}
        self._network = NetworkSelector(**config)
        self._manager = ConnectionManager(self._network, errors, **config)
        # Reading must not create a deleted topic again.
        self._manager.cluster.config["allow_auto_create_topics"] = for_writing
        self._for_writing = for_writing
        self._topics: set[str] = set()
        self._expected: frozenset[str] = frozenset()
        self._stale: set[TopicPartition] = set()
        self._refused: Counter[TopicPartition] = Counter()
        """The wrong answers of the broker that is asked, by partition."""

        max_age_s = self._manager.cluster.config["metadata_max_age_ms"] / 1_000
        self._max_age_s: float = max(max_age_s, _MIN_AGE_S)
        self._outdated_at = math.inf
        self._settings = ConnectionSettings.of(self._manager.config)
        self._backoff = ReconnectBackoff(_backoff_settings(self._manager.config), random.random)
        self._asked: int | None = None
        self.source: int | None = None
        """The broker that the last metadata are of; ``None`` if a bootstrap server sent them."""

    def add_topics(self, topics: Iterable[str]) -> None:
        """Request the metadata of these topics together, with the next request."""
        self._topics = self._topics.union(topics)

    def expect(self, topics: Iterable[str]) -> None:
        """Request the metadata of these topics together, once one of them is used."""
        self._expected = frozenset(topics)

    def leader(self, partition: TopicPartition) -> int | None:
        """Return the leader's node id; ``None`` while there is none.

        :raises KafkaError: if no broker answers in time, or the user must not know the topic.
        """
        self._use(partition.topic)
        client_partition = ClientPartition(partition.topic, partition.partition)
        metadata = self._manager.cluster
        if partition in self._stale or metadata.leader_for_partition(client_partition) in NO_LEADER:
            self.refresh()
            self.check_right(partition.topic)
        return self.known_leader(partition)

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic, 0 if it does not exist.

        :raises KafkaError: if no broker answers in time, the topic's name is invalid, or the user
            must not know it.
        """
        self._use(topic)
        if not self.known_partition_count(topic):
            self.refresh()
        self.check_right(topic)
        return len(self._manager.cluster.partitions_for_topic(topic) or ())

    def known_partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic by the last metadata.

        0 if they do not have it, or are too old.
        """
        metadata = self._manager.cluster
        if self.is_outdated or topic in metadata.unauthorized_topics:
            return 0
        return len(metadata.partitions_for_topic(topic) or ())

    def check_right(self, topic: str) -> None:
        """Check that the user may know a topic, by the last metadata.

        :raises RefusedError: with the missing right; one to write includes that to describe.
        """
        if topic in self._manager.cluster.unauthorized_topics:
            operation = Operation.WRITE if self._for_writing else Operation.DESCRIBE
            rights = [topic_right(operation, topic)]
            error = kafka_errors.TopicAuthorizationFailedError
            raise RefusedError(self._errors.request_error("a request for metadata", error, rights))

    @property
    def topics(self) -> frozenset[str]:
        """The topics in use."""
        return frozenset(self._topics)

    def refresh(self) -> None:
        """Request the metadata of the topics in use.

        :raises KafkaError: if no broker answers in time.
        """
        is_refused_again = any(self._refused[each] > 1 for each in self._stale)
        if (self.is_outdated or is_refused_again) and self._asked is not None:
            # A broker that is cut off from the cluster answers with what it knew before.
            self._manager.ask_others_first(self._asked)
            self._refused.clear()
        # Another attempt soon: an old leader may answer fetches for as long as it is asked.
        self._outdated_at = time.monotonic() + min(self._max_age_s, _REFRESH_AGAIN_S)
        self._asked = self._manager.least_loaded_node()
        refresh = self._manager.cluster.refresh_metadata
        try:
            self._run(self._manager.call_soon(refresh, self._asked))
        except kafka_errors.KafkaTimeoutError:
            self._manager.leave_silent()
            raise
        self._outdated_at = time.monotonic() + self._max_age_s
        self.source = self._asked
        self._stale.clear()

    @property
    def is_outdated(self) -> bool:
        """Whether the last metadata are older than ``metadata.max.age.ms``."""
        return time.monotonic() >= self._outdated_at

    def known_leader(self, partition: TopicPartition) -> int | None:
        """Return the leader's node id by the last metadata; ``None`` without one."""
        client_partition = ClientPartition(partition.topic, partition.partition)
        leader: int | None = self._manager.cluster.leader_for_partition(client_partition)
        return None if leader in NO_LEADER else leader

    def rack(self, node: int) -> str:
        """Return the rack of a broker by the last metadata; ``""`` if they have none."""
        found = self._manager.cluster.broker_metadata(node)
        return (found and found.rack) or ""

    def is_leaderless(self, partition: TopicPartition) -> bool:
        """Return whether a partition exists and has no leader, by the last metadata."""
        client_partition = ClientPartition(partition.topic, partition.partition)
        leader: int | None = self._manager.cluster.leader_for_partition(client_partition)
        return leader == -1

    def leader_epoch(self, partition: TopicPartition) -> int:
        """Return the leader's epoch by the last metadata.

        -1 if it is not known: brokers before Kafka 2.4 may name an old one (KAFKA-9212).
        """
        client_partition = ClientPartition(partition.topic, partition.partition)
        epoch: int | None = self._manager.cluster.leader_epoch_for_partition(client_partition)
        return NO_EPOCH if epoch is None else epoch

    def topic_id(self, topic: str) -> UUID | None:
        """Return a topic's id by the last metadata.

        ``None`` if the topic does not exist, or the cluster is older than Kafka 2.8 (KIP-516).
        """
        found: UUID | None = self._manager.cluster.topic_id(topic)
        return found if found is not None and found.int else None

    def refresh_topics(self, topics: Iterable[str]) -> None:
        """Request the metadata of these topics and of those added before; as ``refresh`` does."""
        self.add_topics(topics)
        self._manager.cluster._topics = self._topics  # noqa: SLF001
        with self._errors.one_deadline():
            self._bootstrap()
            self.refresh()

    def ask_others_first(self, node: int) -> None:
        """Request metadata of other brokers than one that did not answer a fetch."""
        self._manager.ask_others_first(node)

    def nodes(self) -> list[int]:
        """Return the node ids of all brokers; raises as ``refresh`` does."""
        self._bootstrap()
        return [broker.node_id for broker in self._manager.cluster.brokers()]

    def send(self, request: Any, node: int | None = None) -> Any:
        """Send a request to a broker, or to any, and return its response.

        :raises KafkaError: if none comes in time.
        """
        with self._errors.one_deadline():
            self._bootstrap()
            if node is not None:
                self._await_backoff(node)
            return self._run(self._manager.send(request, node))

    def _use(self, topic: str) -> None:
        if topic not in self._topics:
            if self._for_writing:
                self._topics = {*self._topics, topic}
            else:
                self._topics = set(self._expected) if topic in self._expected else {topic}
        # set_topics and add_topic would send requests by themselves.
        self._manager.cluster._topics = self._topics  # noqa: SLF001
        self._bootstrap()

    def _bootstrap(self) -> None:
        if not self._manager.bootstrapped:
            with reading():
                self._manager.bootstrap()
            self._outdated_at = time.monotonic() + self._max_age_s

    def invalidate(self, partition: TopicPartition) -> None:
        """Refresh the metadata before the partition's leader is returned again."""
        self._stale.add(partition)
        self._refused[partition] += 1

    def connect(self, node: int, *, waits: bool = True) -> Opened:
        """Return a new connection to a broker; ``waits`` is whether to wait after a failed attempt.

        :raises NodeNotReadyError: if it does not wait, with why the last attempt failed.
        :raises KafkaError: if the broker does not answer in time.
        """
        address = self._address(node)
        with self._errors.one_deadline() as deadline:
            pause_s = self._backoff.seconds_left(address, time.monotonic())
            if pause_s and not waits:
                raise kafka_errors.NodeNotReadyError(self._backoff.reason(address))
            time.sleep(min(pause_s, deadline.remaining))
            self._errors.refusal.check()
            within = min(deadline, Deadline.after(self._backoff.setup_s(address)))
            try:
                opened = connect_to(*address, self._settings, within, node)
            except Exception as error:
                self._backoff.failed(address, time.monotonic(), reason_of(error))
                raise self._errors.judged(error) from error
        self._backoff.succeeded(address)
        return opened

    def _address(self, node: int) -> Address:
        broker = self._manager.cluster.broker_metadata(node)
        if broker is None:
            raise kafka_errors.UnknownBrokerIdError(node)
        return broker.host, broker.port

    def close(self) -> None:
        """Close all connections."""
        self._manager.close()
        self._network.close()

    def _await_backoff(self, node: int) -> None:
        with self._errors.one_deadline() as deadline:
            while (delay := self._manager.connection_delay(node)) > 0 and not deadline.has_passed:
                self._network.poll(timeout_ms=1_000 * min(delay, deadline.remaining))

    def _run(self, future: Any) -> Any:
        with reading():
            return self._manager.run(self._manager.wait_for, future, None)


def _backoff_settings(config: Mapping[str, Any]) -> BackoffSettings:
    return BackoffSettings(
        config["reconnect_backoff_ms"] / 1_000,
        config["reconnect_backoff_max_ms"] / 1_000,
        config["socket_connection_setup_timeout_ms"] / 1_000,
        config["socket_connection_setup_timeout_max_ms"] / 1_000,
    )


T = TypeVar("T")

RETRY_S: Final = 0.1


@final
class AdminRequests:
    """Sends requests through one ``KafkaAdminClient``, connected at first use."""

    def __init__(self, config: Mapping[str, Any], errors: ErrorMapper) -> None:
        """Take the settings of the client; nothing is connected yet."""
        self._config = config
        self._errors = errors
        self._client: Any = None

    def send(self, request: str, call: Callable[[Any], T], *rights: Right) -> T:
        """Return what ``call`` returns for the client; it is called again while it may succeed.

        :raises PysparkKafkaError: if it fails; ``request`` and ``rights`` are for the message.
        """
        with self._errors.mapped_errors(request, *rights):
            # The admin client does not retry while a coordinator is being found or a connection
            # comes back.
            return self._errors.retry(lambda: self.send_once(call), RETRY_S)

    def send_once(self, call: Callable[[Any], T]) -> T:
        """Return what ``call`` returns for the client.

        :raises KafkaError: if it fails.
        """
        with reading():
            return call(self._connected())

    def close(self) -> None:
        """Close the client; the next request connects a new one."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _connected(self) -> Any:
        if self._client is None:
            self._client = connect(KafkaAdminClient, self._config, self._errors)
        return self._client


def topic_metadata(
    admin: Any, topics: Iterable[str] | None, *, with_operations: bool = False
) -> list[Any]:
    """Return the topics of a ``MetadataResponse``: ``describe_topics`` makes dictionaries of it.

    :raises KafkaProtocolError: if it leaves out a topic, or one has partitions as no topic has.
    """
    topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=None if topics is None else [topic(name=name) for name in topics],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=with_operations,
    )

    async def ask() -> Any:
        return await admin._manager.send(request)  # noqa: SLF001

    answered: list[Any] = admin._manager.run(ask).topics  # noqa: SLF001
    check_topics(answered, topics)
    return answered
