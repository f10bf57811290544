from __future__ import annotations

import itertools
import threading
import time
from dataclasses import replace
from typing import Final

import pytest

from pyspark_kafka.domain.security.errors import AuthenticationError
from pyspark_kafka.ports.security.token_provider import Token, TokenProvider
from pyspark_kafka.testing import TokenIssuer
from pyspark_kafka.testing import TokenProviderContract as Suite

from .adapter import Faults

_LIFE_MS: Final = 300_000


class Issuer(TokenIssuer):
    secret = "hunter2"  # noqa: S105

    def __init__(self, adapter: type[Asking]) -> None:
        self._numbers = itertools.count()
        self._valid: set[str] = set()
        self._refuses = False
        self.provider = adapter(self)

    def issue(self) -> Token:
        if self._refuses:
            raise AuthenticationError("the issuer", "OAUTHBEARER", "ada", "wrong secret")
        value = f"token-{next(self._numbers)}"
        self._valid.add(value)
        extensions = (("logicalCluster", "lkc-1"),)
        expires_ms = int(1_000 * time.time()) + _LIFE_MS
        return Token(value, expires_ms, "ada", extensions)

    def accepts(self, token: Token) -> bool:
        return str(token.value) in self._valid

    def expire(self) -> None:
        self._valid.clear()

    def refuse(self) -> None:
        self._refuses = True

    def allow(self) -> None:
        self._refuses = False


class Asking(TokenProvider):
    """Asks the issuer for each token."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer

    def token(self) -> Token:
        return self.issuer.issue()


def _suite(adapter: type[Asking]) -> type:
    class Held(Suite):
        @pytest.fixture
        def issuer(self):
            return Issuer(adapter)

    return Held


wrong: Final = Faults(Asking, _suite)


@wrong(Suite.test_an_expired_token_is_replaced)
class KeepsToken(Asking):
    """Returns its first token for ever."""

    _token: Token | None = None

    def token(self):
        self._token = self._token or super().token()
        return self._token


@wrong(Suite.test_an_expired_token_is_replaced)
class RenewsOnce(Asking):
    """Replaces its token once only."""

    def __init__(self, issuer):
        super().__init__(issuer)
        self._tokens: list[Token] = []

    def token(self):
        if len(self._tokens) < 2:
            self._tokens.append(super().token())
        return self._tokens[-1]


@wrong(Suite.test_a_token_is_accepted, "token")
def returns_a_token_that_was_never_issued(self):
    return replace(Asking.token(self), value="invented")


@wrong(Suite.test_an_expiry_is_in_milliseconds, "token")
def returns_the_expiry_in_seconds(self):
    token = Asking.token(self)
    return replace(token, expires_ms=token.expires_ms // 1_000)


@wrong(Suite.test_an_expiry_is_in_milliseconds, "token")
def returns_the_expiry_in_microseconds(self):
    token = Asking.token(self)
    return replace(token, expires_ms=token.expires_ms * 1_000)


@wrong(Suite.test_a_token_is_hidden, "__repr__")
def shows_itself(self):
    """Has a ``repr`` with the secret."""
    return f"ShowsItself({self.issuer.secret})"


@wrong(Suite.test_a_broker_can_read_a_token, "token")
def leaves_the_line_end_of_a_file_after_the_token(self):
    token = Asking.token(self)
    return replace(token, value=f"{token.value}\n")


@wrong(Suite.test_a_broker_can_read_a_token, "token")
def has_an_extension_with_the_name_of_the_token_itself(self):
    return replace(Asking.token(self), extensions=(("auth", "Bearer other"),))


@wrong(Suite.test_a_broker_can_read_a_token, "token")
def has_no_principal(self):
    """Returns ``None`` for the principal."""
    return replace(Asking.token(self), principal=None)  # type: ignore[arg-type]


@wrong(Suite.test_threads_share_a_provider)
class KnowsOneThread(Asking):
    """Serves the thread that made it only."""

    def __init__(self, issuer):
        super().__init__(issuer)
        self._thread = threading.get_ident()

    def token(self):
        if threading.get_ident() != self._thread:
            raise RuntimeError("another thread")
        return super().token()


@wrong(Suite.test_a_refusal_is_told_without_the_secret, "token")
def raises_another_error_if_the_login_is_refused(self):
    try:
        return Asking.token(self)
    except AuthenticationError as error:
        raise ValueError(error.message) from error


@wrong(Suite.test_a_refusal_is_told_without_the_secret, "token")
def returns_no_text_if_the_login_is_refused(self):
    try:
        return Asking.token(self)
    except AuthenticationError:
        return Token("", int(1_000 * time.time()) + _LIFE_MS)


@wrong(Suite.test_a_refusal_is_told_without_the_secret, "token")
def raises_an_error_with_the_secret(self):
    try:
        return Asking.token(self)
    except AuthenticationError as error:
        reason = f"wrong secret: {self.issuer.secret}"
        raise AuthenticationError("the issuer", "OAUTHBEARER", "ada", reason) from error


@wrong(Suite.test_a_refusal_ends)
class StaysRefused(Asking):
    """Raises a refusal for ever."""

    _refusal: AuthenticationError | None = None

    def token(self):
        if self._refusal is not None:
            raise self._refusal
        try:
            return super().token()
        except AuthenticationError as error:
            self._refusal = error
            raise
