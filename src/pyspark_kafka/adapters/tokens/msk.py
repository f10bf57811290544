"""Tokens for Amazon MSK, signed with AWS credentials; nothing is requested for a token itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...domain.errors import requires_extra
from ...domain.security.errors import AuthenticationError, TokenUnavailableError
from ...ports.security.token_provider import Token, TokenProvider
from .error_texts import one_line

if TYPE_CHECKING:
    from ...domain.kafka_settings.values import MskIam


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
