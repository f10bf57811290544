"""Tokens of Amazon, Microsoft and Google, by the packages of each."""

from __future__ import annotations

import base64
import json
import re
from calendar import timegm
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from ...domain.errors import requires_extra
from ...domain.security.errors import AuthenticationError, TokenUnavailableError
from ...domain.security.oauth import OAUTHBEARER
from ...ports.clock import epoch_ms
from ...ports.security.token_provider import Token, TokenProvider
from .tokens import REFUSALS, one_line

if TYPE_CHECKING:
    from ...domain.security.oauth import AzureIdentity, GoogleCredentials, MskIam


_WAIT_S: Final = 5
"""The time-out of each connection and answer of a cloud; requests are sent twice at most."""

_REFUSED_BY_AWS: Final = re.compile(
    r"AccessDenied|Unauthorized|Unrecognized|Expired|Malformed|IncompleteSignature"
    r"|(?:Invalid|Missing)\w*(?:Id|Token|Identity)|SignatureDoesNotMatch|OptInRequired|Validation"
)
"""The codes of errors by which AWS refuses credentials or a role. Other errors may pass, such as
``Throttling``, ``InternalFailure`` and ``IDPCommunicationError``."""


@final
class MskTokenProvider(TokenProvider):
    """Signs each token anew, with the current credentials of AWS's default chain.

    Missing credentials may appear in a moment: the services of machines and pods are busy at times,
    and botocore does not distinguish that from a machine without credentials.
    """

    def __init__(self, source: MskIam) -> None:
        """Take the source; credentials are looked up for each token.

        :raises MissingDependencyError: if the extra ``msk`` is not installed.
        """
        with requires_extra("msk", "aws_msk_iam_sasl_signer", "The login at Amazon MSK"):
            from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
            from botocore import exceptions
        self._signer = MSKAuthTokenProvider
        self._refused = exceptions.ClientError
        self._unusable = (
            ValueError,
            exceptions.ConfigNotFound,
            exceptions.ConfigParseError,
            exceptions.InvalidConfigError,
            exceptions.PartialCredentialsError,
            exceptions.ProfileNotFound,
            exceptions.SSOError,
        )
        self._source = source

    def token(self) -> Token:
        try:
            value, expires_ms = self._signed()
        except self._unusable as error:
            raise self._error(error) from error
        except self._refused as error:
            if _REFUSED_BY_AWS.match(error.response.get("Error", {}).get("Code", "")):
                raise self._error(error) from error
            raise TokenUnavailableError("AWS", one_line(error)) from error
        except Exception as error:
            raise TokenUnavailableError("AWS", one_line(error)) from error
        return Token(value, expires_ms)

    def _error(self, error: Exception) -> AuthenticationError:
        return AuthenticationError("Amazon MSK", "AWS IAM", "", one_line(error))

    def _signed(self) -> tuple[str, int]:
        from botocore.config import Config
        from botocore.credentials import CredentialProvider
        from botocore.session import Session

        source = self._source
        session = Session(profile=None if source.role_arn else source.profile or None)
        # Botocore's defaults are five attempts of a minute each.
        limits = Config(
            connect_timeout=_WAIT_S, read_timeout=_WAIT_S, retries={"total_max_attempts": 2}
        )
        session.set_default_client_config(limits)
        default_region = session.get_config_variable("region")
        region = source.region or default_region
        if not region:
            raise ValueError("the brokers' names have no region; set AWS_DEFAULT_REGION")

        class Found(CredentialProvider):  # type: ignore[misc]  # botocore has no types
            def load(self) -> Any:
                return _credentials(session, source, default_region or region)

        signed = self._signer.generate_auth_token_from_credentials_provider(region, Found())
        value, expires_ms = signed
        return value, expires_ms


def _credentials(session: Any, source: MskIam, region: str) -> Any:
    """Return the credentials of a session, or of the role that it assumes in a region."""
    from botocore.credentials import Credentials

    if not source.role_arn:
        found = session.get_credentials()
        if found is None:
            raise LookupError("no AWS credentials were found")
        return found
    name = source.session_name or "MSKSASLDefaultSession"
    assumed = session.create_client("sts", region).assume_role(
        RoleArn=source.role_arn, RoleSessionName=name
    )["Credentials"]
    return Credentials(assumed["AccessKeyId"], assumed["SecretAccessKey"], assumed["SessionToken"])


_LIMITS: Final = {"connection_timeout": _WAIT_S, "read_timeout": _WAIT_S, "retry_total": 1}

_REFUSED_BY_ISSUER: Final = re.compile(
    r"\b(?:invalid_(?:client|grant|request|scope)|unauthorized_client|access_denied"
    r"|unsupported_grant_type)\b"
)
"""The errors of RFC 6749, section 5.2; azure-identity keeps only the text of a refusal."""


@final
class AzureTokenProvider(TokenProvider):
    """Gets tokens from the first of Azure's default credentials that this machine has."""

    def __init__(self, source: AzureIdentity) -> None:
        """Take the source; nothing is requested yet.

        :raises MissingDependencyError: if the extra ``azure`` is not installed.
        """
        with requires_extra("azure", "azure", "The login at Azure"):
            from azure.core.exceptions import AzureError
            from azure.identity import DefaultAzureCredential
        self._error = AzureError
        self._scope = source.scope
        self._credential = DefaultAzureCredential(
            managed_identity_client_id=source.client_id or None, **_LIMITS
        )

    def token(self) -> Token:
        try:
            found = self._credential.get_token(self._scope)
        except self._error as error:
            if _REFUSED_BY_ISSUER.search(str(error)):
                raise AuthenticationError("Azure", OAUTHBEARER, "", one_line(error)) from error
            raise TokenUnavailableError("Azure", one_line(error)) from error
        except ValueError as error:
            raise AuthenticationError("Azure", OAUTHBEARER, "", one_line(error)) from error
        return Token(found.token, 1_000 * found.expires_on)


_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_HEADER: Final = {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}


@final
class GoogleTokenProvider(TokenProvider):
    """Requests each token; the brokers expect it with its user's e-mail, as an unsigned JWT."""

    def __init__(self, _source: GoogleCredentials) -> None:
        """Request nothing yet.

        :raises MissingDependencyError: if the extra ``google`` is not installed.
        """
        with requires_extra("google", "google", "The login at Google"):
            import google.auth
            from google.auth.exceptions import GoogleAuthError, RefreshError
            from google.auth.transport.requests import Request
        self._default = google.auth.default
        self._error = GoogleAuthError
        self._refused = RefreshError
        self._request: type[Any] = Request

    def token(self) -> Token:
        try:
            credentials: Any = self._default(scopes=[_SCOPE])[0]
            credentials.refresh(partial(self._request(), timeout=_WAIT_S))
            return _token(credentials)
        except self._error as error:
            if isinstance(error, self._refused) and _is_refused_by_google(error):
                raise AuthenticationError("Google", OAUTHBEARER, "", one_line(error)) from error
            raise TokenUnavailableError("Google", one_line(error)) from error
        except ValueError as error:
            raise AuthenticationError("Google", OAUTHBEARER, "", one_line(error)) from error


def _is_refused_by_google(error: Any) -> bool:
    """Return whether a ``RefreshError`` is an issuer's answer that does not ask for a retry."""
    cause = error.__cause__
    if cause is None:
        return not error.retryable
    # The answer of a machine's metadata service, if there was one.
    status = getattr(cause.args[-1], "status", 0) if cause.args else 0
    return status in REFUSALS


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
