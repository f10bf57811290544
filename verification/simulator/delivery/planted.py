"""Faults that are planted in the product, and that the simulator has to find."""

from collections.abc import Mapping
from typing import Any, Final

from pyspark_kafka.adapters.confluent import report_kernel
from pyspark_kafka.adapters.confluent.producer_handle import ProducerHandle

from ..engine.simulator import Change

_HANDLE: Final[Any] = ProducerHandle
_REAL_INIT: Final = report_kernel.DeliveryReports.__init__


def _without_offsets(self: Any, *arguments: Any, is_idempotent: bool) -> None:  # noqa: ARG001
    _REAL_INIT(self, *arguments, is_idempotent=False)


PLANTED: Final[Mapping[str, tuple[Change, ...]]] = {
    "B13: an acknowledgement without an offset is a delivery": (
        Change(report_kernel.DeliveryReports, "__init__", _without_offsets),
    ),
    "a topic that was created again is taken for the same": (
        Change(_HANDLE, "_is_same", lambda *_: True),
    ),
    "a topic is always taken for another one": (Change(_HANDLE, "_is_same", lambda *_: False),),
    "a leader is trusted that has appended nothing": (
        Change(report_kernel.DeliveryReports, "has_appended", lambda *_: True),
    ),
}


FOUND_BY: Final[Mapping[str, int]] = {
    "B13: an acknowledgement without an offset is a delivery": 1154,
    "a topic that was created again is taken for the same": 1154,
    "a topic is always taken for another one": 92,
    "a leader is trusted that has appended nothing": 100100,
}
"""The seeds of schedules that find them."""
