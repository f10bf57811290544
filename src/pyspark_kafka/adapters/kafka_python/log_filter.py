"""A filter that keeps secrets out of kafka-python's log.

At level DEBUG, kafka-python 3.0 logs each request, response and frame as it is. The ones of a login
have passwords, bearer tokens and the proofs of SCRAM, from which passwords can be guessed. The
admin client logs all of its settings.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, final

from kafka.protocol.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse

from ...domain.security.secrets import HIDDEN, is_secret, without_secrets

LOGGERS: Final = (
    "kafka.admin.client",
    "kafka.net.connection",
    "kafka.net.manager",
    "kafka.protocol.parser",
)
"""The loggers of the modules that log what a client sends, receives or is set to.

A filter of a logger does not apply to its children: ``kafka`` alone would filter nothing.
"""

_SASL: Final = (SaslAuthenticateRequest, SaslAuthenticateResponse)


def hide_secrets() -> None:
    """Keep secrets out of kafka-python's log in this process, and in those that it forks.

    The level may be set later; a second call does nothing.
    """
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)


@final
class _SecretFilter(logging.Filter):
    """Replaces arguments of records that may show a secret; drops no record."""

    def filter(self, record: logging.LogRecord) -> bool:
        # `logging` unpacks an only argument that is a mapping.
        if isinstance(record.args, Mapping):
            record.args = {name: _setting(name, value) for name, value in record.args.items()}
        elif record.args:
            record.args = tuple(map(_argument, record.args))
        return True


_FILTER: Final = _SecretFilter()


def _argument(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        # Frames of a login by SASL v0 have no header by which they could be told from others.
        return f"{len(value)} bytes"
    if isinstance(value, _SASL):
        return f"{type(value).__name__}({HIDDEN})"
    if value is None or isinstance(value, int | float):
        return value
    # The URL of a proxy may have a password, and a secret may be pasted in place of a topic.
    return without_secrets(str(value))


def _setting(name: object, value: object) -> object:
    # The URL of a proxy may have a password.
    return HIDDEN if is_secret(str(name)) or "proxy" in str(name) else value
