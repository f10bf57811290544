"""Logins of kafka-python by mechanisms of our own, in its registry."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, final

from kafka.errors import SaslAuthenticationFailedError
from kafka.net import sasl as kafka_sasl

from ...domain.errors import MissingDependencyError
from ...domain.kafka_settings.oauth import AWS_MSK_IAM, OAUTHBEARER
from ...domain.kafka_settings.values import Login, MskIam
from ...domain.security.secret_names import HIDDEN
from ..tokens.providers import token_provider
from .gssapi_login import gssapi_messages, require_gssapi
from .scram_login import scram_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    Messages = Generator[bytes, bytes, None]

_LOGIN: Final = "sasl_kerberos_name"
"""kafka-python's only setting of a login that holds an object, and goes to every mechanism."""


def _plain(login: Login, _config: Mapping[str, Any]) -> Messages:
    """Yield the message of RFC 4616, without a user to act for, as Java's client does."""
    yield f"\0{login.username}\0{login.password}".encode()


def _scram(login: Login, _config: Mapping[str, Any]) -> Messages:
    return scram_messages(login)


def _gssapi(login: Login, config: Mapping[str, Any]) -> Messages:
    return gssapi_messages(login, config["sasl_kerberos_domain_name"] or config["host"])


def _oauth(login: Login, _config: Mapping[str, Any]) -> Messages:
    """Yield the message of RFC 7628, section 3.1.

    :raises AuthenticationError: if the issuer refuses a token.
    :raises TokenUnavailableError: if it does not answer.
    :raises SaslAuthenticationFailedError: if the broker does not accept it.
    """
    if login.tokens is None:
        raise SaslAuthenticationFailedError("there is nothing that gets tokens")
    token = token_provider(login.tokens).token()
    extensions = "".join(f"{name}={value}\1" for name, value in token.extensions)
    refusal = yield f"n,,\1auth=Bearer {token.value}\1{extensions}\1".encode()
    if refusal:
        # The broker ends the login after this answer (RFC 7628, section 3.2.3).
        yield b"\1"
        raise SaslAuthenticationFailedError(refusal.decode(errors="replace"))


OWN_MECHANISMS: Final[Mapping[str, Callable[[Login, Mapping[str, Any]], Messages]]] = {
    "PLAIN": _plain,
    "SCRAM-SHA-256": _scram,
    "SCRAM-SHA-512": _scram,
    "GSSAPI": _gssapi,
    OAUTHBEARER: _oauth,
}
"""What yields the messages of a login, by mechanism; the second argument is the client's."""


def sasl_config(login: Login) -> dict[str, Any]:
    """Return kafka-python's settings of a login by one of these mechanisms.

    :raises ValueError: if the package for Kerberos is missing, the keytab cannot be read, or what
        gets tokens cannot be used.
    :raises MissingDependencyError: if the extra for a cloud's tokens is not installed.
    """
    if login.mechanism == "GSSAPI":
        require_gssapi(login)
    if login.mechanism == OAUTHBEARER:
        _require_tokens(login)
    _register()
    return {"sasl_mechanism": login.mechanism, _LOGIN: login}


def msk_config(login: Login) -> dict[str, Any]:
    """Return kafka-python's settings of a login at Amazon MSK; raises as ``sasl_config``.

    kafka-python's own mechanism has neither profiles nor roles. MSK's listeners for IAM accept
    OAUTHBEARER as well.
    """
    if isinstance(login.tokens, MskIam) and login.tokens.names_identity:
        return sasl_config(replace(login, mechanism=OAUTHBEARER))
    if find_spec("botocore") is None:
        raise MissingDependencyError("The login at Amazon MSK", "msk")
    return {"sasl_mechanism": AWS_MSK_IAM}


def _require_tokens(login: Login) -> None:
    if login.tokens is None:
        raise ValueError(
            "Option 'kafka.sasl.mechanism': the client 'kafka-python' supports OAUTHBEARER with a "
            "client's secret or the option 'tokenProvider'; the client 'confluent' has "
            "librdkafka's other ways"
        )
    token_provider(login.tokens)


@lru_cache(maxsize=1)
def _register() -> None:
    """Register the mechanisms, once a process."""
    for name, messages in OWN_MECHANISMS.items():
        own = partial(_mechanism, messages, kafka_sasl.get_sasl_mechanism(name))
        kafka_sasl.register_sasl_mechanism(name, own, overwrite=True)


def _mechanism(
    messages: Callable[[Login, Mapping[str, Any]], Messages],
    other: Callable[..., object],
    **config: Any,
) -> object:
    """Return a mechanism for one connection; clients that others make keep kafka-python's."""
    login = config.get(_LOGIN)
    if not isinstance(login, Login):
        return other(**config)
    return _Mechanism(login, messages(login, config))


@final
class _Message(bytes):
    """A message whose ``repr`` hides it: kafka-python has it in a variable while it logs in."""

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN


@final
class _Mechanism:
    """What kafka-python calls for one login; the generator has the messages."""

    def __init__(self, login: Login, messages: Messages) -> None:
        self._login = login
        self._messages = messages
        self._next = next(messages)
        self._is_done = False

    def auth_bytes(self) -> bytes:
        """Return the next message to the broker."""
        return _Message(self._next)

    def receive(self, answer: bytes) -> None:
        """Take the broker's answer to it."""
        try:
            self._next = self._messages.send(answer)
        except StopIteration:
            self._is_done = True

    def is_done(self) -> bool:
        """Return whether the broker has answered the last message."""
        return self._is_done

    def is_authenticated(self) -> bool:
        """Return whether the login succeeded; a message raises otherwise."""
        return self._is_done

    def auth_details(self) -> str:
        """Return what kafka-python logs."""
        user = self._login.username or self._login.principal or "the owner of the ticket cache"
        return f"Authenticated as {user} by SASL {self._login.mechanism}"
