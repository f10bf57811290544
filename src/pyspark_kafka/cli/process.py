"""Signals, log lines and warnings of the process that runs a command."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Run a block until Ctrl-C or SIGTERM, which end it without an error."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def ending_with_the_pipe() -> Iterator[None]:
    """Run a block that prints until the reader of a pipe has ended."""
    try:
        yield
    except BrokenPipeError:
        # Python would fail again when it flushes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except SystemExit as error:
        # rich's Console.on_broken_pipe, which has done the same.
        if not isinstance(error.__context__, BrokenPipeError):
            raise


def prepare_output() -> None:
    """Let commands print any text, also without an output and in an encoding that lacks it."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def logs_redirected_to(handler: logging.Handler) -> Iterator[None]:
    """Send the log lines and warnings of all libraries to a handler, and close it at the end."""
    root = logging.getLogger()
    root.addHandler(handler)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.removeHandler(handler)
        handler.close()
