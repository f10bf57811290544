"""Tokens for librdkafka's handles, which ask for them in a thread of librdkafka's."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final, final

from ...domain.errors import PysparkKafkaError

if TYPE_CHECKING:
    from ...ports.security.token_provider import Token, TokenProvider

_ERROR_SIZE: Final = 512
_REFRESH: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
"""``void (*)(rd_kafka_t *, const char *oauthbearer_config, void *opaque)``."""


@final
class TokenRefresh:
    """librdkafka's callback for a new token, which comes when 80 % of the last one's life are over.

    It has to be referred to for as long as a handle lives.
    """

    def __init__(self, library: ctypes.CDLL, provider: TokenProvider) -> None:
        self._library = library
        self._provider = provider
        self._callback = _REFRESH(self._refresh)

    def register(self, conf: int) -> None:
        """Have librdkafka call it for the handle that is made of these settings."""
        self._library.rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, self._callback)

    def _refresh(self, client: int, _config: bytes, _opaque: int) -> None:
        try:
            error = set_token(self._library, client, self._provider.token())
        except PysparkKafkaError as failure:
            error = str(failure)
        except Exception as failure:  # noqa: BLE001  # ctypes drops it, and no token would come
            error = type(failure).__name__
        if error:
            # librdkafka asks again after ten seconds, and reports the text as an error.
            self._library.rd_kafka_oauthbearer_set_token_failure(client, error.encode())


def set_token(library: ctypes.CDLL, client: int, token: Token) -> str:
    """Set the token of a handle; return why librdkafka does not accept it, empty if it does."""
    pairs = [text.encode() for pair in token.extensions for text in pair]
    extensions = (ctypes.c_char_p * len(pairs))(*pairs)
    reason = ctypes.create_string_buffer(_ERROR_SIZE)
    failed = library.rd_kafka_oauthbearer_set_token(
        client,
        token.value.encode(),
        token.expires_ms,
        principal_of(token).encode(),
        extensions,
        len(pairs),
        reason,
        _ERROR_SIZE,
    )
    return reason.value.decode(errors="replace") if failed else ""


def principal_of(token: Token) -> str:
    """Return what librdkafka calls the user, which must not be empty."""
    return token.principal or "unknown"
