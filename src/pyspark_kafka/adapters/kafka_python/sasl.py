"""The messages of logins."""

from __future__ import annotations

import hashlib
import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError

from ...domain.security.login import Login
from ...domain.security.oauth import AWS_MSK_IAM, OAUTHBEARER, MskIam
from ...domain.security.scram import scram_messages
from ..process_local import ProcessLocal
from ..security.providers import token_provider

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    _Started = tuple[Any, bytes]
    Messages = Generator[bytes, bytes, None]

# Kerberos (RFC 4752), with tickets from a keytab or of a ticket cache

KDC_SECONDS: Final = 10.0
"""How long a login waits for a KDC. With several KDCs, libkrb5 asks the next one after a second."""

_DEFAULT_SERVICE: Final = "kafka"

_NO_LAYER: Final = 1
"""The bit of a broker's offer of no layer: integrity and encryption are left to TLS."""

_KRB5: Final = -1_765_328_384
"""``ERROR_TABLE_BASE_krb5``: the base of the error numbers of RFC 4120."""

_TRANSIENT: Final = frozenset(
    {
        _KRB5 + 29,  # KDC_ERR_SVC_UNAVAILABLE
        _KRB5 + 34,  # KRB_AP_ERR_REPEAT: two logins in the same microsecond
        _KRB5 + 156,  # KRB5_KDC_UNREACH
    }
)


_THREAD: Final = ProcessLocal[ThreadPoolExecutor]()


def require_gssapi(login: Login) -> None:
    """Raise ``ValueError`` unless the package ``gssapi`` works, and the keytab can be read."""
    try:
        import gssapi  # noqa: F401
    except (ImportError, OSError) as error:
        raise ValueError(
            "Option 'kafka.sasl.mechanism': the client 'kafka-python' needs the package 'gssapi' "
            f"for Kerberos ({error}); install it with: pip install 'pyspark-kafka[kerberos]'"
        ) from error
    if login.keytab:
        try:
            Path(login.keytab.removeprefix("FILE:")).open("rb").close()
        except OSError as error:
            raise ValueError(
                f"Option 'kafka.sasl.jaas.config': the keytab '{login.keytab}' cannot be read: "
                f"{error.strerror}"
            ) from error


def gssapi_messages(login: Login, host: str) -> Generator[bytes, bytes, None]:
    """Yield the messages to a broker, and receive its answers.

    :raises SaslAuthenticationFailedError: if there is no ticket, or the broker refuses it.
    :raises KafkaConnectionError: if no KDC answers in time.
    """
    context, first = _ask_kdc(partial(_start, login, host))
    answer = yield first
    with _named_errors(login):
        while not context.complete:
            answer = yield context.step(answer) or b""
        layers = context.unwrap(answer).message
        if not layers or not layers[0] & _NO_LAYER:
            raise SaslAuthenticationFailedError(
                "GSSAPI: the broker requires a security layer of SASL, which Kafka does not have"
            )
        # Without a layer the largest message is 0, and the user is the ticket's.
        yield context.wrap(bytes((_NO_LAYER, 0, 0, 0)), encrypt=False).message


def _ask_kdc(start: Callable[[], _Started]) -> _Started:
    """Call a function that asks a KDC, in a thread: libkrb5 waits for 50 s if none answers.

    All logins share the thread, because tickets are missing for a moment while they are renewed.
    """
    thread = _THREAD.get() or _THREAD.set(ThreadPoolExecutor(1, "pyspark-kafka-kerberos"))
    started = thread.submit(start)
    try:
        return started.result(KDC_SECONDS)
    except TimeoutError as error:
        started.cancel()
        raise KafkaConnectionError(f"GSSAPI: no KDC answered within {KDC_SECONDS:g} s") from error


def _start(login: Login, host: str) -> _Started:
    """Return a security context, and its first message."""
    import gssapi

    # The library keeps the text of an error for the thread that had the error.
    with _named_errors(login):
        service = f"{login.service_name or _DEFAULT_SERVICE}@{host}"
        context = gssapi.SecurityContext(
            name=gssapi.Name(service, gssapi.NameType.hostbased_service),
            creds=_credentials(login),
            usage="initiate",
            mech=gssapi.MechType.kerberos,
            flags=(gssapi.RequirementFlag.mutual_authentication, gssapi.RequirementFlag.integrity),
        )
        return context, context.step() or b""


def _credentials(login: Login) -> Any:
    """Return credentials, which the library renews from a keytab in the middle of their life."""
    import gssapi

    principal = gssapi.NameType.kerberos_principal
    return gssapi.Credentials(
        name=gssapi.Name(login.principal, principal) if login.principal else None,
        usage="initiate",
        mechs=(gssapi.MechType.kerberos,),
        # Without any, the defaults: KRB5CCNAME, and KRB5_CLIENT_KTNAME for renewals.
        store=_store(login) or None,
    )


def _store(login: Login) -> dict[str, str]:
    if login.keytab:
        # One cache for each user of this process.
        owner = hashlib.sha256(f"{login.keytab}\0{login.principal}".encode()).hexdigest()[:16]
        cache = f"MEMORY:pyspark-kafka-{owner}"
        return {"client_keytab": login.keytab, "ccache": cache}
    return {"ccache": login.ticket_cache} if login.ticket_cache else {}


@contextmanager
def _named_errors(login: Login) -> Iterator[None]:
    """Raise the library's errors as kafka-python's, with the origin of the tickets."""
    import gssapi

    try:
        yield
    except gssapi.exceptions.GSSError as error:
        code = error.min_code
        reasons = error.get_all_statuses(code, is_maj=False) if code else []
        reasons = reasons or error.get_all_statuses(error.maj_code, is_maj=True)
        # The library returns the code as an unsigned number.
        is_transient = code - 2**32 in _TRANSIENT
        kind = KafkaConnectionError if is_transient else SaslAuthenticationFailedError
        raise kind(f"GSSAPI: {'; '.join(reasons)} ({_origin(login)})") from error


def _origin(login: Login) -> str:
    user = f"principal '{login.principal}', " if login.principal else ""
    if login.keytab:
        return f"{user}keytab '{login.keytab}'"
    return f"{user}ticket cache '{login.ticket_cache or 'of KRB5CCNAME'}'"


# All mechanisms


def _plain(login: Login, _host: str) -> Messages:
    """Yield the message of RFC 4616, like Java's client without a user to act for."""
    yield f"\0{login.username}\0{login.password}".encode()


def _scram(login: Login, _host: str) -> Messages:
    return scram_messages(login, secrets.token_urlsafe(24))


def _oauth(login: Login, host: str) -> Messages:
    """Yield the message of RFC 7628, section 3.1; Amazon's tokens are for the broker's region.

    :raises AuthenticationError: if the issuer refuses a token.
    :raises TokenUnavailableError: if it does not answer.
    :raises SaslAuthenticationFailedError: if the broker does not accept it.
    """
    if login.tokens is None:
        raise SaslAuthenticationFailedError("there is nothing that gets tokens")
    source = login.tokens.at(host) if isinstance(login.tokens, MskIam) else login.tokens
    provider = token_provider(source)
    token = provider.token()
    extensions = "".join(f"{name}={value}\1" for name, value in token.extensions)
    try:
        refusal = yield f"n,,\1auth=Bearer {token.value}\1{extensions}\1".encode()
        if refusal:
            # The broker ends the login after this answer (RFC 7628, section 3.2.3).
            yield b"\1"
            raise SaslAuthenticationFailedError(refusal.decode(errors="replace"))  # noqa: TRY301
    except SaslAuthenticationFailedError:
        provider.forget(token)
        raise


MECHANISMS: Final[Mapping[str, Callable[[Login, str], Messages]]] = {
    "PLAIN": _plain,
    "SCRAM-SHA-256": _scram,
    "SCRAM-SHA-512": _scram,
    "GSSAPI": gssapi_messages,
    OAUTHBEARER: _oauth,
}
"""Functions that yield the messages of a login to a host, by mechanism."""


def checked_login(login: Login) -> Login:
    """Return a login that can be used, by one of these mechanisms; MSK's listeners accept tokens.

    :raises ValueError: if the package for Kerberos is missing, the keytab cannot be read, or the
        token provider cannot be used.
    :raises MissingDependencyError: if the extra for a cloud's tokens is not installed.
    """
    if login.mechanism == AWS_MSK_IAM:
        login = replace(login, mechanism=OAUTHBEARER)
    if login.mechanism == "GSSAPI":
        require_gssapi(login)
    if login.mechanism != OAUTHBEARER:
        return login
    if login.tokens is None:
        raise ValueError(
            "Option 'kafka.sasl.mechanism': the client 'kafka-python' supports OAUTHBEARER with a "
            "client's secret or the option 'tokenProvider'; the client 'confluent' has "
            "librdkafka's other ways"
        )
    token_provider(login.tokens)
    return login
