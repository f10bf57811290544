"""Places between a bad record and the end of its task at which a worker is killed.

They come by an entry point of ``pyspark_kafka.containers``.
"""

import enum
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from dependency_injector import providers

from pyspark_kafka.adapters.letters import TopicDeadLetters
from pyspark_kafka.bootstrap.container import Container
from pyspark_kafka.domain.options.sink import dead_letter_sink
from pyspark_kafka.domain.options.source import SourceOptions

from .kill_points import DIRECTORY, install_distribution
from .processes import kill
from .surrounded import Surrounded
from .trap import Trap


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
    entry_point = f"letter_points = {__name__}:{configure.__name__}"
    return install_distribution(directory, f"[pyspark_kafka.containers]\n{entry_point}\n")
