"""What a broker's certificate says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from .finding import Finding, ok, warning

DAYS_LEFT: Final = 30
"""From when on the end of a certificate is a warning."""

_CHECK: Final = "tls"


@final
@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """A certificate that was verified, and how the connection is encrypted.

    ``expires_ms`` is in milliseconds since the epoch. ``chain`` are the subjects of the certificate
    and of its issuers as far as they are known.
    """

    chain: tuple[str, ...]
    expires_ms: int
    version: str
    cipher: str


def check_certificate(address: str, found: PeerCertificate, now_ms: int) -> Finding:
    """Return how long a certificate is valid, which was accepted."""
    days = (found.expires_ms - now_ms) // 86_400_000
    chain = " < ".join(found.chain)
    summary = f"{address}: {found.version}, {chain}, {days} days left"
    if days < DAYS_LEFT:
        return warning(_CHECK, summary, "Ask the cluster's operator to renew the certificate.")
    return ok(_CHECK, summary)
