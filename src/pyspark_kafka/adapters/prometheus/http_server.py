"""An HTTP server that Prometheus scrapes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...domain.errors import requires_extra

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry


def new_registry() -> CollectorRegistry:
    """Return a registry that has nothing yet.

    :raises MissingDependencyError: if prometheus-client is not installed.
    """
    with requires_extra("prometheus", "prometheus_client", "prometheus-client"):
        from prometheus_client import CollectorRegistry
    return CollectorRegistry()


@contextmanager
def serving(registry: CollectorRegistry, host: str, port: int) -> Iterator[str]:
    """Serve the metrics of a registry, and yield the URL; port 0 is any that is free.

    :raises OSError: if the address cannot be used.
    """
    from prometheus_client import start_http_server

    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise OSError(f"Cannot listen on {host}, port {port}: {error}") from error
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
