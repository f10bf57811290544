"""Places between a bad record and the end of its task at which a worker is killed.

They come by an entry point of ``pyspark_kafka.containers``, with a format that needs no kernel.
"""

import enum
import os
from collections.abc import Iterator
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
from pyspark_kafka.ports.letters import BadRecords, DeadLetters
from pyspark_kafka.ports.values.value_format import (
    DecodedValues,
    Payloads,
    ValueDecoder,
    ValueFormat,
)

from .kill_points import DIRECTORY, install_distribution
from .processes import kill
from .trap import Trap

FORMAT: Final = "numbers"
"""The name of the format: a value is the digits of a number."""


class LetterPoint(enum.Enum):
    """A place in a task that has bad records."""

    WRITING = "before letters are sent"
    SENT = "after letters are sent"
    ACKNOWLEDGED = "after letters are acknowledged"


@final
class TrappedLetters(DeadLetters):
    """Another's letters, with points around them."""

    def __init__(self, letters: DeadLetters, trap: Trap) -> None:
        self._letters = letters
        self._trap = trap

    def write(self, bad: BadRecords) -> None:
        self._reach(LetterPoint.WRITING)
        self._letters.write(bad)
        self._reach(LetterPoint.SENT)

    def flush(self) -> int:
        acknowledged = self._letters.flush()
        self._reach(LetterPoint.ACKNOWLEDGED)
        return acknowledged

    def close(self) -> None:
        self._letters.close()

    def _reach(self, point: LetterPoint) -> None:
        if self._trap.spring(point):
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
    """Put the points into a container; the entry point names this."""
    options = container.options()
    if options.dead_letter_topic is not None:
        trap = Trap(Path(os.environ[DIRECTORY]))
        make_writer = container.client().record_writer
        container.dead_letters.override(
            providers.Resource(_letters, make_writer, options, trap=trap)
        )


def _letters(
    make_writer: Any, options: SourceOptions, topic: str, *, trap: Trap
) -> Iterator[DeadLetters]:
    sink = dead_letter_sink(options, topic)
    letters = TrappedLetters(TopicDeadLetters(make_writer, sink, topic), trap)
    yield letters
    letters.close()


def install(site: Path) -> None:
    """Make a distribution in a directory for Python's path that brings the points."""
    entry_points = (
        f"[pyspark_kafka.containers]\nletter_points = {__name__}:{configure.__name__}\n"
        f"[pyspark_kafka.value_formats]\n{FORMAT} = {__name__}:VALUE_FORMAT\n"
    )
    install_distribution(site, "letters", entry_points)
