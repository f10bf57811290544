"""The wrong adapters of every port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark_kafka.ports.record_writer import RecordWriter

from . import record_writer
from .adapter import PortFaults

if TYPE_CHECKING:
    from collections.abc import Mapping

FAULTS: Final[Mapping[type, PortFaults]] = {
    RecordWriter: PortFaults(record_writer.RIGHT, record_writer.WRONG),
}
