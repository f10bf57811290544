"""Findings of fuzzers, in files: one for each place where an error is raised."""

import hashlib
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from .parsers import Parser, TooSlowError, decode_input, encode_input, try_input

_MAX_TRIES: Final = 400
SUFFIX: Final = ".input"


@dataclass(slots=True)
class Findings:
    """The smallest input for each place, as files with the traceback beside."""

    folder: Path
    parsers: Mapping[str, Parser]
    _seen: set[str] = field(default_factory=set)

    def add(self, data: bytes, error: BaseException) -> None:
        """Save an input that raised an error, unless one is known that raises it there."""
        place = place_of(error)
        key = hashlib.sha256(place.encode()).hexdigest()[:12]
        path = self.folder / f"{decode_input(data)[0]}-{key}{SUFFIX}"
        if key in self._seen or path.exists():
            return
        self._seen.add(key)
        path.with_suffix(".txt").write_text("".join(traceback.format_exception(error)))
        path.write_bytes(data)
        if not isinstance(error, TooSlowError):
            path.write_bytes(self._minimized(data, place))

    def _minimized(self, data: bytes, place: str) -> bytes:
        """Remove parts as long as the same error is raised at the same place."""
        name, content = decode_input(data)
        tries, size = 0, len(content) // 2
        while size and tries < _MAX_TRIES:
            for smaller in _without_parts(content, size):
                tries += 1
                if self._raises(encode_input(name, smaller), place):
                    content = smaller
                    break
            else:
                size //= 2
        return encode_input(name, content)

    def _raises(self, data: bytes, place: str) -> bool:
        try:
            try_input(self.parsers, data)
        except BaseException as error:  # noqa: BLE001  # any is a finding
            return place_of(error) == place
        return False


def _without_parts(content: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(content), size):
        yield content[:start] + content[start + size :]


def place_of(error: BaseException) -> str:
    """Return the type of an error, and the last lines that led to it, without its text."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, TooSlowError | RecursionError | MemoryError):
        # Where it is interrupted is left to chance.
        frames = traceback.StackSummary(frames[:6])
    lines = [f"{frame.filename}:{frame.name}:{frame.line}" for frame in frames[-4:]]
    return "\n".join((type(error).__name__, *lines))


def say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()
