"""Requests of kafka-python's admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from kafka import KafkaAdminClient

from .cluster_metadata import connect
from .responses import reading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...domain.security.rights import Right
    from .failures import ErrorMapper

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
