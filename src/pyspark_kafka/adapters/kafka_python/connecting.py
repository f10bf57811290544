"""kafka-python's clients, made so that a failure says why and leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, final

from kafka.errors import KafkaTimeoutError
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


@final
class ConnectionManager(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's manager, whose bootstrap says why the last connection failed.

    3.0.12 only logs it: "Unable to bootstrap from [...]" has neither the refused connection nor the
    failed TLS handshake or name resolution.
    """

    _last_error: Exception | None = None

    async def _connect(self, node: Any, conn: Any, **arguments: Any) -> None:
        conn.close_future.add_errback(self._remember)
        await super()._connect(node, conn, **arguments)

    async def _do_bootstrap(self, deadline: float | None) -> Any:
        try:
            return await super()._do_bootstrap(deadline)
        except KafkaTimeoutError as error:
            raise KafkaTimeoutError(str(self._last_error or error.args[0])) from self._last_error

    def _remember(self, error: Exception) -> None:
        self._last_error = error


def connect(client: Callable[..., T], config: Mapping[str, Any]) -> T:
    """Return a connected ``KafkaAdminClient`` or ``KafkaConsumer``.

    If that fails, 3.0.12 leaves the thread of its network client running, which tries to connect
    for as long as the process lives.
    """
    made: list[Any] = []

    def keep(**network_config: Any) -> Any:
        network = NetworkSelector(**network_config)
        manager = ConnectionManager(network, **network_config)
        made.append(KafkaNetClient(network, manager))
        return made[-1]

    try:
        return client(**config, kafka_client=keep)
    except BaseException:
        for network in made:
            network.close()
            network._net.stop()  # noqa: SLF001  # as KafkaAdminClient.close does
        raise
