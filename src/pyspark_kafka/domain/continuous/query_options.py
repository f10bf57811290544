"""The options of a continuous query, except its source's and its sink's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ..options.option import milliseconds, server_list
from ..options.sink import DeliveryGuarantee

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..options.sink import SinkOptions
    from ..options.source import SourceOptions

_UNITS: Final[Mapping[str, str]] = {
    "millisecond": "ms",
    "second": "s",
    "minute": "m",
    "hour": "h",
    "day": "d",
}


def interval_ms(text: str) -> int:
    """Return the milliseconds of ``1 second``, as of Spark's triggers, or of ``1s``.

    :raises ValueError: if it is not an interval, or not above 0.
    """
    found = re.fullmatch(r"\s*(\d+)\s+([a-z]+?)s?\s*", text.lower())
    if found and found[2] in _UNITS:
        text = found[1] + _UNITS[found[2]]
    interval = milliseconds(text)
    if interval <= 0:
        raise ValueError(f"an interval must be above 0, got '{text}'")
    return interval


def option_conflicts(source: SourceOptions, sink: SinkOptions) -> list[str]:
    """Return the problems of options that do not go together."""
    problems = []
    if source.client != sink.client:
        problems.append(
            f"source and sink must use the same client, got '{source.client}' and '{sink.client}'"
        )
    servers = server_list(sink.bootstrap_servers)
    is_same = not set(servers).isdisjoint(server_list(source.bootstrap_servers))
    if sink.guarantee is DeliveryGuarantee.EXACTLY_ONCE and not is_same:
        problems.append(
            "deliveryGuarantee 'exactly-once' needs source and sink in the same Kafka cluster: "
            "the input's offsets are part of the output's transaction. Their "
            "'kafka.bootstrap.servers' have no server in common"
        )
    return problems
