"""Targets of a fuzzer: parsers by name, and what has to hold for any bytes."""

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

T = TypeVar("T")

CPU_S: Final = 2.0
"""How much processor time one input may take, with all that is held against it."""

MAX_BYTES: Final = 64 * 1024
DECODE_S: Final = 1.0
"""How much processor time it may take to decode ``MAX_BYTES`` by kernels that are compiled."""


class TooSlowError(BaseException):
    """An input takes too long; no parser catches this."""


@dataclass(frozen=True, slots=True)
class Parser:
    """A parser, the errors that it documents, and valid inputs.

    ``read`` also asserts what must hold for what it returns.
    """

    name: str
    read: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    valid: Iterable[bytes] = field(repr=False)


def encode_input(name: str, content: bytes) -> bytes:
    """Return the input of a fuzzer: the parser's name, a line feed, and what it reads."""
    return name.encode() + b"\n" + content


def decode_input(data: bytes) -> tuple[str, bytes]:
    """Return the name of a parser and what it reads."""
    name, _, content = data.partition(b"\n")
    return name.decode("latin-1"), content


def try_input(parsers: Mapping[str, Parser], data: bytes) -> None:
    """Parse an input; raise anything but the documented errors, and ``TooSlowError``."""
    name, content = decode_input(data)
    parser = parsers.get(name)
    if parser is None:
        return
    with limited_time(), suppress(*parser.errors):
        parser.read(content)


@contextmanager
def quickly() -> Iterator[None]:
    """Raise ``TooSlowError`` if the block took more than ``DECODE_S`` of processor time."""
    begun = time.process_time()
    try:
        yield
    finally:
        spent = time.process_time() - begun
        # Not an alarm as below: no handler runs before a kernel returns.
        if spent > DECODE_S:
            raise TooSlowError(f"{spent:.2f} s of processor time")


def decode_quickly(decode: Callable[[], T]) -> T:
    """Return what is decoded; raise ``TooSlowError`` if it took more than ``DECODE_S``, twice."""
    begun = time.process_time()
    decoded = decode()
    if time.process_time() - begun > DECODE_S:
        # The first time may have been a compiler's, or have found the changes of all time zones.
        with quickly():
            decoded = decode()
    return decoded


@contextmanager
def limited_time() -> Iterator[None]:
    """Raise ``TooSlowError`` if the block takes too much processor time."""

    def too_slow(*_: Any) -> None:
        raise TooSlowError(f"more than {CPU_S} s of processor time")

    # Not of the wall clock: other programs run at the same time.
    before = signal.signal(signal.SIGVTALRM, too_slow)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
