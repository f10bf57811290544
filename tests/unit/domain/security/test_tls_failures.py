import pytest

from pyspark_kafka.domain.security.errors import TlsFailure, tls_failure


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            (
                "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed "
                "certificate in certificate chain (_ssl.c:1006)"
            ),
            TlsFailure.CERTIFICATE_NOT_TRUSTED,
        ),
        (
            (
                "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local "
                "issuer certificate (_ssl.c:1006)"
            ),
            TlsFailure.CERTIFICATE_NOT_TRUSTED,
        ),
        (
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired",
            TlsFailure.CERTIFICATE_EXPIRED,
        ),
        (
            (
                "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: Hostname mismatch, "
                "certificate is not valid for 'localhost'. (_ssl.c:1006)"
            ),
            TlsFailure.HOST_NAME_MISMATCH,
        ),
        (
            (
                "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: IP address mismatch, "
                "certificate is not valid for '127.0.0.1'. (_ssl.c:1006)"
            ),
            TlsFailure.HOST_NAME_MISMATCH,
        ),
        (
            "[SSL: TLSV1_ALERT_PROTOCOL_VERSION] tlsv1 alert protocol version",
            TlsFailure.VERSION_NOT_SHARED,
        ),
        (
            "[SSL: SSLV3_ALERT_HANDSHAKE_FAILURE] sslv3 alert handshake failure",
            TlsFailure.CIPHER_NOT_SHARED,
        ),
        (
            "[SSL: SSLV3_ALERT_BAD_CERTIFICATE] sslv3 alert bad certificate",
            TlsFailure.CLIENT_CERTIFICATE_REFUSED,
        ),
        (
            "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required",
            TlsFailure.CLIENT_CERTIFICATE_REFUSED,
        ),
        (
            "SSL routines::sslv3 alert certificate expired: SSL alert number 45",
            TlsFailure.CLIENT_CERTIFICATE_REFUSED,
        ),
        ("[SSL: TLSV1_ALERT_UNKNOWN_CA] unknown ca", TlsFailure.CLIENT_CERTIFICATE_REFUSED),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number", TlsFailure.NOT_TLS),
        ("SSL handshake failed: Disconnected", TlsFailure.HANDSHAKE_FAILED),
        ("Connection refused", None),
        ("Disconnected while requesting ApiVersion", None),
    ],
)
def test_the_words_of_openssl_tell_why_a_handshake_failed(text, expected):
    assert tls_failure(text) is expected
