"""Tokens of Amazon, Microsoft and Google, by the packages of each."""

from __future__ import annotations

import base64
import json
from calendar import timegm
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from ...domain.errors import requires_extra
from ...domain.security.errors import AuthenticationError, TokenUnavailableError
from ...domain.security.oauth import OAUTHBEARER
from ...ports.clock import epoch_ms
from ...ports.security.token_provider import Token, TokenProvider
from .tokens import one_line

if TYPE_CHECKING:
    from ...domain.security.oauth import AzureIdentity, GoogleCredentials, MskIam


@final
class MskTokenProvider(TokenProvider):
    """Signs each token again, with the credentials that AWS's default chain has then."""

    def __init__(self, source: MskIam) -> None:
        """Take the source; credentials are looked up for each token.

        :raises MissingDependencyError: if the extra ``msk`` is not installed.
        """
        with requires_extra("msk", "aws_msk_iam_sasl_signer", "The login at Amazon MSK"):
            from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
            from botocore import exceptions
        self._signer = MSKAuthTokenProvider
        self._unavailable = (exceptions.ConnectionError, exceptions.HTTPClientError)
        self._source = source

    def token(self) -> Token:
        try:
            value, expires_ms = self._signed(self._source.region or _default_region())
        except self._unavailable as error:
            raise TokenUnavailableError("AWS", one_line(error)) from error
        except Exception as error:
            # botocore's errors, and an AttributeError if there are no credentials.
            is_missing = isinstance(error, AttributeError)
            reason = "no AWS credentials were found" if is_missing else one_line(error)
            raise AuthenticationError("Amazon MSK", "AWS IAM", "", reason) from error
        return Token(value, expires_ms)

    def _signed(self, region: str) -> tuple[str, int]:
        source, signer = self._source, self._signer
        if source.role_arn:
            session = [source.session_name] if source.session_name else []
            signed = signer.generate_auth_token_from_role_arn(region, source.role_arn, *session)
        elif source.profile:
            signed = signer.generate_auth_token_from_profile(region, source.profile)
        else:
            signed = signer.generate_auth_token(region)
        value, expires_ms = signed
        return value, expires_ms


def _default_region() -> str:
    from botocore.session import Session

    region = Session().get_config_variable("region")
    if not region:
        raise ValueError("the brokers' names have no region; set AWS_DEFAULT_REGION")
    return str(region)


_LIMITS: Final = {"connection_timeout": 5, "read_timeout": 5, "retry_total": 1}


@final
class AzureTokenProvider(TokenProvider):
    """Gets tokens from the first of Azure's default credentials that this machine has."""

    def __init__(self, source: AzureIdentity) -> None:
        """Take the source; nothing is requested yet.

        :raises MissingDependencyError: if the extra ``azure`` is not installed.
        """
        with requires_extra("azure", "azure", "The login at Azure"):
            from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseError
            from azure.identity import DefaultAzureCredential
        self._error = AzureError
        self._unavailable = (ServiceRequestError, ServiceResponseError)
        self._scope = source.scope
        self._credential = DefaultAzureCredential(
            managed_identity_client_id=source.client_id or None, **_LIMITS
        )

    def token(self) -> Token:
        try:
            found = self._credential.get_token(self._scope)
        except self._unavailable as error:
            raise TokenUnavailableError("Azure", one_line(error)) from error
        except (self._error, ValueError) as error:
            raise AuthenticationError("Azure", OAUTHBEARER, "", one_line(error)) from error
        return Token(found.token, 1_000 * found.expires_on)


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
