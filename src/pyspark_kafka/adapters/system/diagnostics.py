"""The facts about this machine for the doctor: versions, and probes of the network."""

from __future__ import annotations

import platform
import socket
import ssl
from importlib import metadata
from typing import TYPE_CHECKING, Any, final

from ...domain.cluster.finding import Environment, PeerCertificate
from ...domain.cluster.versions import REPORTED
from ..security.tls_context import CurrentContext, pem_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...domain.options.client_settings import JavaSettings


def environment() -> Environment:
    """Return the versions of Python and of the packages that matter."""
    found = {}
    for name in REPORTED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return Environment(platform.python_version(), found)


@final
class NetworkProbe:
    """Connects as a client with these settings does."""

    def __init__(self, java: JavaSettings, timeout_s: float) -> None:
        self._java = java
        self._timeout_s = timeout_s

    def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of a name.

        :raises OSError: if it has none.
        """
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(place[0]) for *_, place in found))

    def connect(self, host: str, port: int) -> None:
        """Connect, and close the connection.

        :raises OSError: if that fails.
        """
        socket.create_connection((host, port), self._timeout_s).close()

    def handshake(self, host: str, port: int) -> PeerCertificate:
        """Connect with TLS; return the broker's certificate, the version of TLS and the cipher.

        :raises OSError: if that fails; also if the certificate is refused.
        :raises ValueError: if a store cannot be read.
        """
        if self._java.tls is None:
            raise ValueError(f"'{self._java.protocol}' has no TLS")
        context = CurrentContext(self._java.tls, pem_files(self._java.others))
        with (
            socket.create_connection((host, port), self._timeout_s) as connected,
            context.wrap_socket(
                connected, server_hostname=host, do_handshake_on_connect=True
            ) as secured,
        ):
            certificate: Any = secured.getpeercert() or {}
            return PeerCertificate(
                tuple(_name(certificate.get(role, ())) for role in ("subject", "issuer")),
                int(ssl.cert_time_to_seconds(certificate["notAfter"]) * 1_000),
                secured.version() or "",
                (secured.cipher() or ("",))[0],
            )


def _name(parts: Any) -> str:
    """Return a distinguished name as in a certificate's text: ``CN=broker, O=Example``."""
    short = {"commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU"}
    pairs = (pair for part in parts for pair in part)
    return ", ".join(f"{short.get(name, name)}={value}" for name, value in pairs) or "no name"
