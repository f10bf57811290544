"""Getting the tokens of a login by OAUTHBEARER."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import final

from ...domain.security.secrets import Secret


@final
@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token, and when it expires, in milliseconds since the epoch.

    ``principal`` is the user that librdkafka names in its log lines; brokers take theirs from the
    token. ``extensions`` go to the broker with the token (RFC 7628, section 3.1).
    """

    value: str = field(repr=False)
    expires_ms: int
    principal: str = ""
    extensions: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        # Other values than texts stay: a user's function returned them, and an error reports that.
        if isinstance(self.value, str):
            object.__setattr__(self, "value", Secret(self.value))


class TokenProvider(ABC):
    """Gets tokens; any thread may call it, also several at once."""

    @abstractmethod
    def token(self) -> Token:
        """Return a token that brokers accept now, after some seconds at most.

        :raises AuthenticationError: if the issuer refuses one.
        :raises TokenUnavailableError: if it cannot be asked.
        """
