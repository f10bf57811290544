"""kafka-python's errors, as this library's."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from kafka import errors as kafka_errors

from ...domain.errors import BrokerUnreachableError, KafkaRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

UNREACHABLE = (
    kafka_errors.KafkaTimeoutError,
    kafka_errors.KafkaConnectionError,
    kafka_errors.NodeNotReadyError,
    kafka_errors.MetadataEmptyBrokerList,
)


@final
@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster that is talked to, as far as an error has to name it."""

    bootstrap_servers: str
    timeout_ms: int

    @contextmanager
    def mapped_errors(self, request: str) -> Iterator[None]:
        """Turn what kafka-python raises while it answers ``request`` into our errors."""
        try:
            yield
        except UNREACHABLE as error:
            raise BrokerUnreachableError(self.bootstrap_servers, self.timeout_ms / 1_000) from error
        except kafka_errors.KafkaError as error:
            raise KafkaRequestError(request, str(error)) from error
