"""Requests about topics, made with kafka-python's admin client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..domain.errors import BrokerUnreachableError, KafkaRequestError


@contextmanager
def admin_client(bootstrap_servers: str, request: str, timeout_seconds: float) -> Iterator[Any]:
    """Yield an admin client, whose errors become those of this library.

    :raises BrokerUnreachableError: if no broker answers in time.
    :raises KafkaRequestError: if a broker refuses ``request``.
    """
    from kafka import KafkaAdminClient, errors

    timeout_ms = int(timeout_seconds * 1_000)
    try:
        with KafkaAdminClient(
            bootstrap_servers=bootstrap_servers.split(","),
            bootstrap_timeout_ms=timeout_ms,
            request_timeout_ms=timeout_ms,
        ) as admin:
            yield admin
    except (errors.KafkaTimeoutError, errors.KafkaConnectionError) as error:
        raise BrokerUnreachableError(bootstrap_servers, timeout_seconds) from error
    except errors.KafkaError as error:
        raise KafkaRequestError(request, str(error)) from error


@contextmanager
def temporary_topics(
    bootstrap_servers: str, partitions: Mapping[str, int], timeout_seconds: float
) -> Iterator[None]:
    """Create topics, by name and number of partitions, and delete them after the block.

    :raises BrokerUnreachableError: if no broker answers in time.
    :raises KafkaRequestError: if a broker refuses to create or delete one.
    """
    names = list(partitions)
    with admin_client(
        bootstrap_servers, f"the creation of topics {names}", timeout_seconds
    ) as admin:
        admin.create_topics(
            {name: {"num_partitions": count} for name, count in partitions.items()},
            wait_for_metadata=True,
        )
    try:
        yield
    finally:
        with admin_client(
            bootstrap_servers, f"the deletion of topics {names}", timeout_seconds
        ) as admin:
            admin.delete_topics(names)
