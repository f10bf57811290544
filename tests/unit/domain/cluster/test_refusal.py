"""How long a refused connection is not repeated."""

from collections.abc import Iterator
from typing import Self

from pyspark_kafka.domain.cluster.refusal import Refusals
from pyspark_kafka.domain.security.errors import (
    REFUSED_LOGIN_S,
    AuthenticationError,
    TlsError,
    TlsFailure,
)

LOGIN = AuthenticationError("b:1", "PLAIN", "u", "no")


def test_a_refused_login_is_remembered_for_minutes_and_tls_for_a_moment():
    refusals = Refusals()
    assert refusals.at(0) is None
    refusals.remember(LOGIN, 0)
    assert isinstance(refusals.at(REFUSED_LOGIN_S - 1), AuthenticationError)
    assert refusals.at(REFUSED_LOGIN_S) is None
    refusals.remember(TlsError("b:1", TlsFailure.NOT_TLS, "no"), 0)
    assert isinstance(refusals.at(0.9), TlsError)
    assert refusals.at(1) is None


def test_logins_are_told_apart():
    refusals = Refusals()
    refusals.remember(LOGIN, 0, b"first")
    assert refusals.at(1, b"first") is not None
    assert refusals.at(1, b"second") is None


def test_each_caller_raises_an_error_of_its_own():
    """Several threads may raise it, and each adds its own traceback."""
    refusals = Refusals()
    refusals.remember(LOGIN, 0)
    first = refusals.at(1)
    assert first is not None
    assert first is not refusals.at(1)
    assert str(first) == str(LOGIN)


def test_a_refusal_does_not_disturb_a_thread_that_reads_others():
    """Two threads may note what was refused at once, and each looks at all refusals."""
    refusals = Refusals()
    reading: list[Iterator[object]] = []

    class PausingError(AuthenticationError):
        def __copy__(self) -> Self:
            reading.append(iter(refusals._refusals))
            return self

    for login in (b"first", b"second"):
        refusals.remember(PausingError("memory", "PLAIN", "ada", "no"), 0, login)
    assert [len(list(each)) for each in reading] == [0, 1]
