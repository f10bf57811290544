"""The contract suite of ``TokenProvider``."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import pytest

from ..domain.security.errors import AuthenticationError
from ..domain.security.oauth import is_extension
from .fixtures import required_fixture

if TYPE_CHECKING:
    from ..ports.security.token_provider import Token, TokenProvider

_WEEK_MS: Final = 7 * 24 * 3_600_000
# RFC 6750, section 2.1.
_BEARER: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_THREADS: Final = 8


class TokenIssuer(ABC):
    """The issuer of a provider's tokens, or a stand-in for it."""

    provider: TokenProvider
    """The provider under test."""

    secret: str
    """The secret that the provider shows to the issuer alone."""

    @abstractmethod
    def accepts(self, token: Token) -> bool:
        """Return whether a broker that trusts this issuer accepts a token now."""

    @abstractmethod
    def expire(self) -> None:
        """Let all tokens that were issued expire, for the provider as well."""

    @abstractmethod
    def refuse(self) -> None:
        """Refuse the provider's login from now on."""

    @abstractmethod
    def allow(self) -> None:
        """Accept the login again, after the time for which a refusal is kept."""


class TokenProviderContract:
    """The contract of ``TokenProvider``; a subclass overrides the fixture ``issuer``."""

    issuer = required_fixture("Return the issuer of the provider under test.")

    def test_a_token_is_accepted(self, issuer: TokenIssuer) -> None:
        """Brokers accept a token, also that of a second call."""
        assert issuer.accepts(issuer.provider.token())
        assert issuer.accepts(issuer.provider.token())

    def test_an_expiry_is_in_milliseconds(self, issuer: TokenIssuer) -> None:
        """A token expires in the future, and within a week."""
        now_ms = 1_000 * time.time()
        assert 0 < issuer.provider.token().expires_ms - now_ms < _WEEK_MS

    def test_a_token_is_hidden(self, issuer: TokenIssuer) -> None:
        """The provider's ``repr`` contains neither the token nor the secret."""
        token = issuer.provider.token()
        shown = f"{token!r} {token.value!r} {issuer.provider!r}"
        assert token.value not in shown
        assert issuer.secret not in shown

    def test_a_broker_can_read_a_token(self, issuer: TokenIssuer) -> None:
        """The value and the extensions have the characters that RFC 6750 and 7628 allow."""
        token = issuer.provider.token()
        assert _BEARER.fullmatch(token.value)
        assert all(is_extension(name, value) for name, value in token.extensions)
        assert isinstance(token.principal, str)

    def test_an_expired_token_is_replaced(self, issuer: TokenIssuer) -> None:
        """After a token has expired, the provider returns another one, which brokers accept."""
        issuer.provider.token()
        for _ in range(2):
            issuer.expire()
            assert issuer.accepts(issuer.provider.token())

    def test_threads_share_a_provider(self, issuer: TokenIssuer) -> None:
        """Several threads at once get tokens that brokers accept."""
        with ThreadPoolExecutor(_THREADS) as pool:
            waiting = [pool.submit(issuer.provider.token) for _ in range(_THREADS)]
            assert all(issuer.accepts(each.result(timeout=60)) for each in waiting)

    def test_a_refusal_is_told_without_the_secret(self, issuer: TokenIssuer) -> None:
        """A refused login raises ``AuthenticationError``, which does not contain the secret."""
        issuer.refuse()
        with pytest.raises(AuthenticationError) as raised:
            issuer.provider.token()
        assert issuer.secret not in f"{raised.value} {raised.value!r}"

    def test_a_refusal_ends(self, issuer: TokenIssuer) -> None:
        """A login that is accepted again gets a token."""
        issuer.refuse()
        with pytest.raises(AuthenticationError):
            issuer.provider.token()
        issuer.allow()
        assert issuer.accepts(issuer.provider.token())
