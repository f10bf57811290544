"""Addresses of bootstrap servers."""

from __future__ import annotations

import re
from typing import Final

_ADDRESS: Final = re.compile(
    r"(?:[\w.%-]*://)?(?:\[(?P<ipv6>[\w.%:-]+)\]|(?P<host>[\w.%-]+))(?::(?P<port>\d{1,5}))?",
    re.ASCII,
)
"""As ``HOST_PORT_PATTERN`` of Kafka's class ``Utils``, which needs the port."""


def server_address(server: str) -> tuple[str, int] | None:
    """Return host and port of a bootstrap server, or ``None`` if it has another form.

    The port may be missing: kafka-python and librdkafka then take 9092.
    """
    found = _ADDRESS.fullmatch(server)
    if found is None or not 0 < (port := int(found["port"] or 9092)) < 65_536:
        return None
    return found["ipv6"] or found["host"], port
