"""Tokens of a token endpoint, for a client's id and secret (RFC 6749, section 4.4)."""

from __future__ import annotations

import base64
import binascii
import ssl
import time
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import quote_plus, urlencode

from ...domain.security.errors import AuthenticationError, TokenUnavailableError
from ...domain.security.oauth import OAUTHBEARER
from ...domain.security.secrets import hide
from ...ports.clock import Deadline, epoch_ms
from ...ports.security.token_provider import Token, TokenProvider
from ..http import RequestError, Response, json_fields, request
from .tls_context import Rotating
from .tokens import BEARER, REFUSALS, readable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.security.oauth import ClientCredentials


TIMEOUT_S: Final = 10.0
"""The limit of all attempts together: Java's connections to token endpoints have none."""

_PAUSE_S: Final = 0.2
_OK: Final = 200


class _RefusedError(Exception):
    """The endpoint refused a token; the message is its reason."""


@final
class OidcTokenProvider(TokenProvider):
    """Requests each token from an endpoint.

    Only the statuses ``REFUSALS`` refuse a login. Any other answer without a token may be a proxy's
    or truncated, and the endpoint is asked again.
    """

    def __init__(self, source: ClientCredentials, timeout_s: float = TIMEOUT_S) -> None:
        """Read the certificates of the endpoint's authorities; nothing is requested yet.

        :raises ValueError: if they cannot be read.
        """
        self._source = source
        self._place = source.endpoint.partition("?")[0]
        self._timeout_s = timeout_s
        files = [source.ca_location] if source.ca_location else []
        self._tls = Rotating(files, lambda: _tls(source))

    def token(self) -> Token:
        source, deadline, pause_s = self._source, Deadline.after(self._timeout_s), _PAUSE_S
        while True:
            # Errors are raised without a cause, whose traceback would hold the header with the
            # secret.
            try:
                return _token(self._response(deadline), source)
            except _RefusedError as error:
                reason, is_refusal = self._shown(error), True
            except RequestError as error:
                reason, is_refusal = self._shown(error), False
            if is_refusal:
                raise AuthenticationError(self._place, OAUTHBEARER, source.client_id, reason)
            if deadline.remaining < pause_s:
                raise TokenUnavailableError(self._place, reason)
            time.sleep(pause_s)
            pause_s *= 2

    def _response(self, deadline: Deadline) -> Response:
        source = self._source
        form = {"grant_type": "client_credentials"}
        form |= {"scope": source.scope} if source.scope else {}
        form |= {"audience": source.audience} if source.audience else {}
        headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {_encoded(source)}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        body = urlencode(form).encode()
        return request(
            "POST", source.endpoint, headers, deadline, body=body, tls=self._tls.current()
        )

    def _shown(self, error: Exception) -> str:
        source = self._source
        return readable(hide(str(error), (source.client_secret, _encoded(source))))


def _tls(source: ClientCredentials) -> ssl.SSLContext | None:
    if not source.endpoint.startswith("https:"):
        return None
    try:
        return ssl.create_default_context(
            cafile=source.ca_location or None, cadata=source.ca_pem or None
        )
    except (OSError, ValueError) as error:
        name = "location" if source.ca_location else "pem"
        raise ValueError(f"Option 'kafka.https.ca.{name}' cannot be read: {error}") from error


def _encoded(source: ClientCredentials) -> str:
    parts = [source.client_id, str(source.client_secret)]
    if source.encodes_header:
        parts = [quote_plus(part) for part in parts]
    return base64.b64encode(":".join(parts).encode()).decode()


def _token(response: Response, source: ClientCredentials) -> Token:
    fields = json_fields(response.body)
    if response.status != _OK:
        said = [str(fields[name]) for name in ("error", "error_description") if fields.get(name)]
        kind = _RefusedError if response.status in REFUSALS else RequestError
        raise kind(f"HTTP {response.status} {': '.join(said)}".strip())
    value = fields.get("access_token")
    if not isinstance(value, str) or not BEARER.fullmatch(value):
        raise RequestError("its response has no 'access_token' that is a bearer token")
    claims = claims_of(value)
    principal = claims.get("sub")
    return Token(
        value,
        _expiry_ms(fields.get("expires_in"), claims.get("exp")),
        principal if isinstance(principal, str) else source.client_id,
        source.extensions,
    )


def _expiry_ms(expires_in: object, exp: object) -> int:
    """Return the end of a token, by the response or else by the token itself.

    The first is relative to the time of its issuer, so that clocks may differ.
    """
    now = epoch_ms()
    try:
        if expires_in is not None:
            expires_ms = now + int(1_000 * float(str(expires_in)))
        else:
            expires_ms = int(1_000 * float(str(exp)))
    except (ValueError, OverflowError):
        raise RequestError("neither its response nor the token says when it expires") from None
    if expires_ms <= now:
        raise RequestError("its token has expired already; check the clock of this machine")
    return expires_ms


def claims_of(token: str) -> Mapping[str, Any]:
    """Return the claims of a JWT, unverified; none if the token is not a JWT."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        return json_fields(base64.urlsafe_b64decode(parts[1] + "=="))
    except (binascii.Error, ValueError):
        return {}
