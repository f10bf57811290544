"""The provider of a login: one for each source of tokens, shared by all clients of a process."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ...domain.kafka_settings.values import (
    AzureIdentity,
    ClientCredentials,
    GoogleCredentials,
    MskIam,
    TokenFunction,
)
from .renewal import RenewedTokens

if TYPE_CHECKING:
    from ...domain.kafka_settings.values import TokenSource
    from ...ports.security.token_provider import TokenProvider


@lru_cache(maxsize=64)
def token_provider(source: TokenSource) -> TokenProvider:
    """Return what gets tokens from a source, and keeps them as long as they are of use.

    :raises ValueError: if the source cannot be used.
    :raises MissingDependencyError: if its extra is not installed.
    """
    return RenewedTokens(_new_provider(source))


def _new_provider(source: TokenSource) -> TokenProvider:
    match source:
        case ClientCredentials():
            from .oidc import OidcTokenProvider

            return OidcTokenProvider(source)
        case MskIam():
            from .msk import MskTokenProvider

            return MskTokenProvider(source)
        case AzureIdentity():
            from .azure import AzureTokenProvider

            return AzureTokenProvider(source)
        case GoogleCredentials():
            from .google import GoogleTokenProvider

            return GoogleTokenProvider(source)
        case TokenFunction():
            from .functions import FunctionTokenProvider

            return FunctionTokenProvider(source)
