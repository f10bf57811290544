"""Tokens for Google's Managed Service for Apache Kafka, by application default credentials."""

from __future__ import annotations

import base64
import json
from calendar import timegm
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from ...domain.errors import requires_extra
from ...domain.kafka_settings.oauth import OAUTHBEARER
from ...domain.security.errors import AuthenticationError, TokenUnavailableError
from ...ports.clock import epoch_ms
from ...ports.security.token_provider import Token, TokenProvider
from .error_texts import one_line

if TYPE_CHECKING:
    from ...domain.kafka_settings.values import GoogleCredentials

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_HEADER: Final = {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
_TIMEOUT_S: Final = 5


@final
class GoogleTokenProvider(TokenProvider):
    """Requests each token; the brokers expect it with its user's e-mail, as an unsigned JWT."""

    def __init__(self, _source: GoogleCredentials) -> None:
        """Request nothing yet.

        :raises MissingDependencyError: if the extra ``google`` is not installed.
        """
        with requires_extra("google", "google", "The login at Google"):
            import google.auth
            from google.auth.exceptions import GoogleAuthError, TransportError
            from google.auth.transport.requests import Request
        self._default = google.auth.default
        self._error = GoogleAuthError
        self._unavailable = TransportError
        self._request: type[Any] = Request

    def token(self) -> Token:
        try:
            credentials: Any = self._default(scopes=[_SCOPE])[0]
            credentials.refresh(partial(self._request(), timeout=_TIMEOUT_S))
            return _token(credentials)
        except self._unavailable as error:
            raise TokenUnavailableError("Google", one_line(error)) from error
        except (self._error, ValueError) as error:
            raise AuthenticationError("Google", OAUTHBEARER, "", one_line(error)) from error


def _token(credentials: Any) -> Token:
    user = getattr(credentials, "service_account_email", None)
    if not user:
        raise ValueError("the credentials do not belong to a service account")
    # google-auth's times are in UTC, without a time zone.
    expires_s = timegm(credentials.expiry.utctimetuple())
    claims = {
        "exp": expires_s,
        "iat": epoch_ms() // 1_000,
        "iss": "Google",
        "scope": "kafka",
        "sub": user,
    }
    parts = (json.dumps(_HEADER), json.dumps(claims), credentials.token)
    return Token(".".join(map(_base64, parts)), 1_000 * expires_s, user)


def _base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
