"""The letters in a dead-letter topic: reading them, and replaying their records."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ..adapters.system.clock import SystemClock
from ..application.letters.dead_letter_log import DeadLetterLog, LetterCounter, LetterReplay
from ..domain.options.sink import dead_letter_sink
from .container import closing_clients, container_for, sink_container_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..domain.options.source import SourceOptions


@contextmanager
def dead_letter_log_for(options: SourceOptions, topic: str) -> Iterator[DeadLetterLog]:
    """Yield the log of a dead-letter topic, and close its clients afterwards.

    :raises OptionsError: if the value of the option ``client`` is unknown.
    """
    with closing_clients(container_for(options)) as container:
        yield DeadLetterLog(container.offset_fetcher(), container.range_read, topic)


@contextmanager
def letter_counter_for(options: SourceOptions, topic: str) -> Iterator[LetterCounter]:
    """Yield a counter of the letters in a topic, and close its clients afterwards.

    :raises OptionsError: if the value of the option ``client`` is unknown.
    """
    with dead_letter_log_for(options, topic) as log:
        yield LetterCounter(log, SystemClock())


@contextmanager
def letter_replay_for(
    options: SourceOptions, topic: str | None, *, is_dry: bool = False
) -> Iterator[LetterReplay]:
    """Yield what writes records back: to ``topic``, or to their own topics.

    :raises OptionsError: if the client cannot write.
    """
    with ExitStack() as stack:
        writer = None
        if not is_dry:
            made = sink_container_for(dead_letter_sink(options, topic))
            writer = stack.enter_context(closing_clients(made)).record_writer()
        yield LetterReplay(writer, topic)
