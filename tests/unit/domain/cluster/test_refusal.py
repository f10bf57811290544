"""How long a refused connection is not repeated."""

from pyspark_kafka.domain.cluster.refusal import Refusal
from pyspark_kafka.domain.security.errors import (
    REFUSED_LOGIN_S,
    AuthenticationError,
    TlsError,
    TlsFailure,
)


def test_a_refused_login_is_remembered_for_minutes_and_tls_for_a_moment():
    login = AuthenticationError("b:1", "PLAIN", "u", "no")
    tls = TlsError("b:1", TlsFailure.NOT_TLS, "no")
    refusal = Refusal()
    assert refusal.at(0) is None
    refusal.remember(login, 0)
    assert refusal.at(REFUSED_LOGIN_S - 1) is login
    assert refusal.at(REFUSED_LOGIN_S) is None
    refusal.remember(tls, 0)
    assert refusal.at(0.9) is tls
    assert refusal.at(1) is None
