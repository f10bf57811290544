"""The token provider of each source, one for each process."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ...domain.security.oauth import (
    AzureIdentity,
    ClientCredentials,
    GoogleCredentials,
    MskIam,
    TokenFunction,
)
from .tokens import FunctionTokenProvider, RenewedTokens

if TYPE_CHECKING:
    from ...domain.security.oauth import TokenSource
    from ...ports.security.token_provider import TokenProvider


@lru_cache(maxsize=64)
def token_provider(source: TokenSource) -> RenewedTokens:
    """Return the provider of a source's tokens, which keeps each one as long as it is usable.

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
            from .cloud_tokens import MskTokenProvider

            return MskTokenProvider(source)
        case AzureIdentity():
            from .cloud_tokens import AzureTokenProvider

            return AzureTokenProvider(source)
        case GoogleCredentials():
            from .cloud_tokens import GoogleTokenProvider

            return GoogleTokenProvider(source)
        case TokenFunction():
            return FunctionTokenProvider(source)
