"""Why a TLS handshake failed: both clients pass on the words of OpenSSL."""

from __future__ import annotations

import enum
import re
from typing import Final


class TlsFailure(enum.Enum):
    """A reason, by the name of the error's sub-condition; the value is what to do next."""

    CERTIFICATE_NOT_TRUSTED = (
        "Set 'kafka.ssl.truststore.location' or 'kafka.ssl.truststore.certificates' to the "
        "authority that issued the brokers' certificates."
    )
    CERTIFICATE_EXPIRED = (
        "Renew the brokers' certificate, or correct the clock of this machine if the certificate "
        "is valid."
    )
    HOST_NAME_MISMATCH = (
        "Connect to a name that the brokers' certificate has, in 'kafka.bootstrap.servers' and in "
        "the brokers' advertised listeners; the empty option "
        "'kafka.ssl.endpoint.identification.algorithm' turns this check off."
    )
    VERSION_NOT_SHARED = (
        "Client and broker allow no common version of TLS: compare "
        "'kafka.ssl.enabled.protocols' with the brokers' 'ssl.enabled.protocols'."
    )
    CIPHER_NOT_SHARED = (
        "Client and broker allow no common cipher suite: compare 'kafka.ssl.cipher.suites' with "
        "the brokers' 'ssl.cipher.suites'."
    )
    CLIENT_CERTIFICATE_REFUSED = (
        "The broker requires a client certificate that it trusts and that is not expired: check "
        "'kafka.ssl.keystore.location' or 'kafka.ssl.keystore.certificate.chain'."
    )
    NOT_TLS = (
        "The port does not speak TLS: check the port in 'kafka.bootstrap.servers' and "
        "'kafka.security.protocol'."
    )
    HANDSHAKE_FAILED = "See the brokers' logs for the reason."


_WORDS: Final = (
    # The client's own checks of the broker's certificate.
    (TlsFailure.CERTIFICATE_EXPIRED, r"certificate has expired|certificate is not yet valid"),
    (TlsFailure.HOST_NAME_MISMATCH, r"hostname mismatch|ip address mismatch|not valid for"),
    # Alerts of the broker, about the client's certificate.
    (
        TlsFailure.CLIENT_CERTIFICATE_REFUSED,
        (
            r"alert (?:bad certificate|certificate|unknown ca|unsupported certificate)"
            r"|certificate.required|peer did not return a certificate"
        ),
    ),
    (
        TlsFailure.CERTIFICATE_NOT_TRUSTED,
        r"certificate verify failed|self.signed certificate|unable to get (?:local )?issuer",
    ),
    (TlsFailure.VERSION_NOT_SHARED, r"protocol.version|unsupported.protocol"),
    (TlsFailure.CIPHER_NOT_SHARED, r"handshake.failure|no.shared.cipher|no.ciphers.available"),
    (TlsFailure.NOT_TLS, r"wrong.version.number|http request|packet length too long"),
    (TlsFailure.HANDSHAKE_FAILED, r"ssl handshake|ssl routines|\[ssl[:\]]"),
)


def tls_failure(text: str) -> TlsFailure | None:
    """Return what a client's text about a connection says of TLS; ``None`` if it says nothing.

    The texts are OpenSSL's (``X509_verify_cert_error_string``, ``SSL_alert_desc_string_long``, and
    the reasons of its errors), around which Python and librdkafka put their own.
    """
    lower = text.lower().replace("_", " ")
    return next((failure for failure, words in _WORDS if re.search(words, lower)), None)
