"""Tokens of Microsoft Entra ID, by Azure's default credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...domain.errors import requires_extra
from ...domain.kafka_settings.oauth import OAUTHBEARER
from ...domain.security.errors import AuthenticationError, TokenUnavailableError
from ...ports.security.token_provider import Token, TokenProvider
from .error_texts import one_line

if TYPE_CHECKING:
    from ...domain.kafka_settings.values import AzureIdentity

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
