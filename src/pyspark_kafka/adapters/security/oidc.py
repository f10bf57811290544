"""Tokens of a token endpoint, for a client's id and secret (RFC 6749, section 4.4)."""

from __future__ import annotations

import base64
import binascii
import json
import re
import ssl
import time
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import quote_plus, urlencode

from ...domain.security.errors import AuthenticationError, TokenUnavailableError
from ...domain.security.oauth import OAUTHBEARER
from ...domain.security.secrets import hide
from ...ports.clock import Deadline, epoch_ms
from ...ports.security.token_provider import Token, TokenProvider
from ..http import RequestError, Response, post
from .tokens import readable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...domain.security.oauth import ClientCredentials


TIMEOUT_S: Final = 10.0
"""For all attempts together: Java's connections to token endpoints have no limit at all."""

_PAUSE_S: Final = 0.2
_BEARER: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""RFC 6750, section 2.1."""

_OK: Final = 200
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500


class _RefusedError(Exception):
    """The endpoint gave no token; the message is its reason."""


@final
class OidcTokenProvider(TokenProvider):
    """Requests each token from an endpoint."""

    def __init__(self, source: ClientCredentials, timeout_s: float = TIMEOUT_S) -> None:
        """Read the certificates of the endpoint's authorities; nothing is requested yet.

        :raises ValueError: if they cannot be read.
        """
        self._source = source
        self._place = source.endpoint.partition("?")[0]
        self._timeout_s = timeout_s
        self._tls = _tls(source)

    def token(self) -> Token:
        source = self._source
        try:
            response = self._response(Deadline.after(self._timeout_s))
            return _token(response, source)
        except _RefusedError as error:
            reason = readable(hide(str(error), (source.client_secret, _encoded(source))))
            raise AuthenticationError(self._place, OAUTHBEARER, source.client_id, reason) from None
        except RequestError as error:
            raise TokenUnavailableError(self._place, readable(str(error))) from error

    def _response(self, deadline: Deadline) -> Response:
        """Return the first response that is not a passing failure, or the last one."""
        pause_s = _PAUSE_S
        while True:
            response: Response | RequestError
            try:
                response = self._post(deadline)
            except RequestError as error:
                response = error
            is_last = deadline.remaining < pause_s
            if isinstance(response, RequestError):
                if is_last:
                    raise response
            elif is_last or not _is_passing(response):
                return response
            time.sleep(pause_s)
            pause_s *= 2

    def _post(self, deadline: Deadline) -> Response:
        source = self._source
        form = {"grant_type": "client_credentials"}
        form |= {"scope": source.scope} if source.scope else {}
        form |= {"audience": source.audience} if source.audience else {}
        headers = {
            "Accept": "application/json",
            "Authorization": _basic(source),
            "Content-Type": "application/x-www-form-urlencoded",
        }
        return post(source.endpoint, urlencode(form).encode(), headers, deadline, self._tls)


def _is_passing(response: Response) -> bool:
    return response.status == _TOO_MANY or response.status >= _SERVER_ERROR


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


def _basic(source: ClientCredentials) -> str:
    return f"Basic {_encoded(source)}"


def _encoded(source: ClientCredentials) -> str:
    parts = [source.client_id, str(source.client_secret)]
    if source.encodes_header:
        parts = [quote_plus(part) for part in parts]
    return base64.b64encode(":".join(parts).encode()).decode()


def _token(response: Response, source: ClientCredentials) -> Token:
    fields = _json_object(response.body)
    if _is_passing(response):
        raise RequestError(f"HTTP {response.status}")
    if response.status != _OK:
        said = [str(fields[name]) for name in ("error", "error_description") if fields.get(name)]
        raise _RefusedError(f"HTTP {response.status} {': '.join(said)}")
    value = fields.get("access_token")
    if not isinstance(value, str) or not _BEARER.fullmatch(value):
        raise _RefusedError("its response has no 'access_token' that is a bearer token")
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
        raise _RefusedError("neither its response nor the token says when it expires") from None
    if expires_ms <= now:
        raise _RefusedError("its token has expired already")
    return expires_ms


def claims_of(token: str) -> Mapping[str, Any]:
    """Return the claims of a JWT, unverified; none if the token is another one."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        return _json_object(base64.urlsafe_b64decode(parts[1] + "=="))
    except (binascii.Error, ValueError):
        return {}


def _json_object(content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
