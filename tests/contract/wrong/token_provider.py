"""Providers that break a promise of ``TokenProvider``."""

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

from .adapter import PortFaults, wrong_with

_LIFE_MS: Final = 300_000


class Issuer(TokenIssuer):
    """Issues numbered tokens."""

    secret = "hunter2"  # noqa: S105

    def __init__(self, adapter: type[Asking]) -> None:
        self._numbers = itertools.count()
        self._valid: set[str] = set()
        self._refuses = False
        self.provider = adapter(self)

    def issue(self) -> Token:
        """Return a new token."""
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


class KeepsToken(Asking):
    """Returns its first token for ever."""

    _token: Token | None = None

    def token(self) -> Token:
        self._token = self._token or super().token()
        return self._token


class RenewsOnce(Asking):
    """Replaces its token once only."""

    def __init__(self, issuer: Issuer) -> None:
        super().__init__(issuer)
        self._tokens: list[Token] = []

    def token(self) -> Token:
        if len(self._tokens) < 2:
            self._tokens.append(super().token())
        return self._tokens[-1]


class Invents(Asking):
    """Returns a token that was never issued."""

    def token(self) -> Token:
        return replace(super().token(), value="invented")


class TellsSeconds(Asking):
    """Returns the expiry in seconds."""

    def token(self) -> Token:
        token = super().token()
        return replace(token, expires_ms=token.expires_ms // 1_000)


class TellsMicroseconds(Asking):
    """Returns the expiry in microseconds."""

    def token(self) -> Token:
        token = super().token()
        return replace(token, expires_ms=token.expires_ms * 1_000)


class ShowsItself(Asking):
    """Has a ``repr`` with the secret."""

    def __repr__(self) -> str:
        return f"ShowsItself({self.issuer.secret})"


class AddsLine(Asking):
    """Leaves the line end of a file after the token."""

    def token(self) -> Token:
        token = super().token()
        return replace(token, value=f"{token.value}\n")


class NamesAuth(Asking):
    """Has an extension with the name of the token itself."""

    def token(self) -> Token:
        return replace(super().token(), extensions=(("auth", "Bearer other"),))


class HasNoPrincipal(Asking):
    """Returns ``None`` for the principal."""

    def token(self) -> Token:
        return replace(super().token(), principal=None)  # type: ignore[arg-type]


class KnowsOneThread(Asking):
    """Serves the thread that made it only."""

    def __init__(self, issuer: Issuer) -> None:
        super().__init__(issuer)
        self._thread = threading.get_ident()

    def token(self) -> Token:
        if threading.get_ident() != self._thread:
            raise RuntimeError("another thread")
        return super().token()


class RaisesAnything(Asking):
    """Raises another error if the login is refused."""

    def token(self) -> Token:
        try:
            return super().token()
        except AuthenticationError as error:
            raise ValueError(error.message) from error


class IgnoresRefusal(Asking):
    """Returns no text if the login is refused."""

    def token(self) -> Token:
        try:
            return super().token()
        except AuthenticationError:
            return Token("", int(1_000 * time.time()) + _LIFE_MS)


class TellsSecret(Asking):
    """Raises an error with the secret."""

    def token(self) -> Token:
        try:
            return super().token()
        except AuthenticationError as error:
            reason = f"wrong secret: {self.issuer.secret}"
            raise AuthenticationError("the issuer", "OAUTHBEARER", "ada", reason) from error


class StaysRefused(Asking):
    """Raises a refusal for ever."""

    _refusal: AuthenticationError | None = None

    def token(self) -> Token:
        if self._refusal is not None:
            raise self._refusal
        try:
            return super().token()
        except AuthenticationError as error:
            self._refusal = error
            raise


def _suite(adapter: type[Asking]) -> type:
    class Held(Suite):
        @pytest.fixture
        def issuer(self):
            return Issuer(adapter)

    return Held


_wrong: Final = wrong_with(_suite)


FAULTS: Final = PortFaults(
    _suite(Asking),
    (
        *_wrong(Suite.test_a_token_is_accepted, Invents),
        *_wrong(Suite.test_an_expiry_is_in_milliseconds, TellsSeconds, TellsMicroseconds),
        *_wrong(Suite.test_a_token_is_hidden, ShowsItself),
        *_wrong(Suite.test_a_broker_can_read_a_token, AddsLine, NamesAuth, HasNoPrincipal),
        *_wrong(Suite.test_an_expired_token_is_replaced, KeepsToken, RenewsOnce),
        *_wrong(Suite.test_threads_share_a_provider, KnowsOneThread),
        *_wrong(
            Suite.test_a_refusal_is_told_without_the_secret,
            RaisesAnything,
            IgnoresRefusal,
            TellsSecret,
        ),
        *_wrong(Suite.test_a_refusal_ends, StaysRefused),
    ),
)
