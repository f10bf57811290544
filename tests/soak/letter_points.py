"""Places between a bad record and the end of its task at which a worker is killed.

They come by an entry point of ``pyspark_kafka.containers``, with a format that needs no kernel.
"""

import enum
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from dependency_injector import providers

from pyspark_kafka.adapters.letters import TopicDeadLetters
from pyspark_kafka.bootstrap.container import Container
from pyspark_kafka.domain.options.sink import dead_letter_sink
from pyspark_kafka.domain.options.source import SourceOptions
from pyspark_kafka.domain.values.data_types import StructType, parse_struct
from pyspark_kafka.domain.values.errors import FailureReason
from pyspark_kafka.ports.values.value_format import (
    DecodedValues,
    Payloads,
    ValueDecoder,
    ValueFormat,
)

from .kill_points import DIRECTORY, install_distribution
from .processes import kill
from .surrounded import Surrounded
from .trap import Trap

FORMAT: Final = "numbers"
"""The name of the format: a value is the digits of a number."""


class LetterPoint(enum.Enum):
    """A place in a task that has bad records."""

    WRITING = "before letters are sent"
    SENT = "after letters are sent"
    ACKNOWLEDGED = "after letters are acknowledged"


@contextmanager
def _around(call: str, *_: object) -> Iterator[None]:
    if call == "write":
        _reach(LetterPoint.WRITING)
    yield
    if call in _AFTER:
        _reach(_AFTER[call])


_AFTER: Final = {"write": LetterPoint.SENT, "flush": LetterPoint.ACKNOWLEDGED}


def _reach(point: LetterPoint) -> None:
    if Trap(Path(os.environ[DIRECTORY])).spring(point):
        kill(os.getpid())


@final
class NumberDecoder(ValueDecoder):
    """Reads values of digits, without framing."""

    def __init__(self, data_type: StructType) -> None:
        self._data_type = data_type

    @property
    def data_type(self) -> StructType:
        return self._data_type

    @property
    def field_names(self) -> tuple[str, ...]:
        return self._data_type.names

    def decode(self, payloads: Payloads) -> DecodedValues:
        texts = payloads.values.cast(pa.string())
        is_good = pc.match_substring_regex(texts, "^[0-9]+$")
        numbers: pa.Array[Any] = pc.if_else(is_good, texts, pa.scalar(None, pa.string()))
        names = list(self._data_type.names)
        column = pa.StructArray.from_arrays([numbers.cast(pa.int64())], names)
        is_bad = ~is_good.to_numpy(zero_copy_only=False)
        reasons = np.where(is_bad, FailureReason.MALFORMED, FailureReason.NONE).astype(np.uint8)
        return DecodedValues(column, reasons, np.full(len(texts), -1, np.int32))


VALUE_FORMAT: Final = ValueFormat(
    lambda options, _schema: parse_struct(options.schema or ""),
    lambda _options, _schema, wanted: NumberDecoder(wanted),
)


def configure(container: Container) -> None:
    options = container.options()
    if options.dead_letter_topic is not None:
        make_writer = container.client().record_writer
        container.dead_letters.override(providers.Resource(_letters, make_writer, options))


def _letters(make_writer: Any, options: SourceOptions, topic: str) -> Iterator[Surrounded]:
    letters = TopicDeadLetters(make_writer, dead_letter_sink(options, topic), topic)
    yield Surrounded(letters, _around)
    letters.close()


def install(directory: Path) -> dict[str, str]:
    """Return the variables of a driver whose workers meet the points, armed in a directory."""
    return install_distribution(
        directory,
        f"[pyspark_kafka.containers]\nletter_points = {__name__}:{configure.__name__}\n"
        f"[pyspark_kafka.value_formats]\n{FORMAT} = {__name__}:VALUE_FORMAT\n",
    )
