import pytest

from pyspark_kafka.domain.security.errors import TlsFailure, tls_failure

NOT_VERIFIED = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "
NOT_VALID = "mismatch, certificate is not valid for 'localhost'. (_ssl.c:1006)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{NOT_VERIFIED}self-signed certificate in certificate chain (_ssl.c:1006)",
            TlsFailure.CERTIFICATE_NOT_TRUSTED,
        ),
        (
            f"{NOT_VERIFIED}unable to get local issuer certificate (_ssl.c:1006)",
            TlsFailure.CERTIFICATE_NOT_TRUSTED,
        ),
        (f"{NOT_VERIFIED}certificate has expired", TlsFailure.CERTIFICATE_EXPIRED),
        (f"{NOT_VERIFIED}Hostname {NOT_VALID}", TlsFailure.HOST_NAME_MISMATCH),
        (f"{NOT_VERIFIED}IP address {NOT_VALID}", TlsFailure.HOST_NAME_MISMATCH),
        (
            "[SSL: TLSV1_ALERT_PROTOCOL_VERSION] tlsv1 alert protocol version",
            TlsFailure.VERSION_NOT_SHARED,
        ),
        ("sslv3 alert handshake failure", TlsFailure.CIPHER_NOT_SHARED),
        ("sslv3 alert bad certificate", TlsFailure.CLIENT_CERTIFICATE_REFUSED),
        ("tlsv13 alert certificate required", TlsFailure.CLIENT_CERTIFICATE_REFUSED),
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
