"""Fuzzes the decoder of record batches.

    python -m tests.fuzz.fuzz_record_decoder --minutes 60 --seed 1
    python -m tests.fuzz.fuzz_record_decoder --replay build/fuzz/1-4711.json

A child process tries one case after another: each is made from the seed and its number, from what
the guided fuzzer has kept, or by damaging a valid batch (``kernel_cases``). It lies in memory that
ends at a forbidden page. The parent sees that the child ends by itself, or takes more
than ten seconds for a case; it keeps the case, says how to replay it, and goes on behind it.
After ``NUMBA_BOUNDSCHECK=1 python -m kernel_build``, the kernels check each index besides.
"""

import argparse
import faulthandler
import itertools
import mmap
import random
import resource
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final, final

from .batch_parser import warm_up
from .inputs import Case
from .kernel_cases import kept_inputs, kernel_case
from .trial import try_case

_HUNG_S: Final = 10.0
_BEGIN_S: Final = 300.0
"""How long a child may take before its first case."""

_ROOM: Final = 32 * 1024 * 1024
_STATE: Final = struct.Struct("=7q")
_MEMORY: Final = 6 * 1024**3


@final
class State:
    """What a child says to its parent, in a file that both have mapped."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_ROOM))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _ROOM)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The case, its size, and how many had rows, each error, rows in all, findings."""
        return _STATE.unpack_from(self._memory)

    @numbers.setter
    def numbers(self, numbers: Sequence[int]) -> None:
        _STATE.pack_into(self._memory, 0, *numbers)

    @property
    def case(self) -> bytes:
        """The case that is tried."""
        start, size = _STATE.size, self.numbers[1]
        return self._memory[start : start + size]

    @case.setter
    def case(self, text: bytes) -> None:
        self._memory[_STATE.size : _STATE.size + len(text)] = text


def child(seed: int, first: int, keep: Path, state: State) -> None:
    """Try cases without end."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warm_up()
    kept = kept_inputs()
    _, _, with_rows, corrupt, malformed, rows, findings = state.numbers
    seen: set[str] = set()
    for number in itertools.count(first):
        dice = random.Random(f"{seed}/{number}")  # noqa: S311  # nothing is secret
        case = kernel_case(dice, kept)
        text = case.to_json()
        state.case = text
        state.numbers = (number, len(text), with_rows, corrupt, malformed, rows, findings)
        try:
            outcome = try_case(case)
        except Exception:  # noqa: BLE001  # any is a finding
            trace = traceback.format_exc()
            place = trace.rsplit("File ", 1)[-1]
            findings += 1
            if place not in seen:
                seen.add(place)
                _report(case, keep / f"{seed}-{number}.json", trace)
            continue
        rows += len(outcome.rows)
        with_rows += bool(outcome.rows)
        corrupt += "CorruptBatchError" in (outcome.error or "")
        malformed += "MalformedTimestampError" in (outcome.error or "")


def parent(seed: int, minutes: float, first: int, keep: Path) -> int:
    """Start children for some time; give how many findings there were."""
    path = keep / f"{seed}.state"
    path.unlink(missing_ok=True)
    state = State(path)
    state.numbers = (first, 0, 0, 0, 0, 0, 0)
    deadline = time.monotonic() + 60 * minutes
    number = first
    while time.monotonic() < deadline:
        ended = _watch(seed, number, keep, state, deadline)
        number, size, *counts, findings = state.numbers
        if ended is None:
            break
        if size:
            _report(Case.from_json(state.case), keep / f"{seed}-{number}.json", ended)
        else:
            sys.exit(f"the child did not begin: {ended}")
        number += 1
        state.numbers = (number, 0, *counts, findings + 1)
    number, _, with_rows, corrupt, malformed, rows, findings = state.numbers
    _say(
        f"{number - first + 1} cases: {with_rows} with rows ({rows}), {corrupt} corrupt, "
        f"{malformed} with a timestamp that does not fit; {findings} findings"
    )
    return findings


def _watch(seed: int, first: int, keep: Path, state: State, deadline: float) -> str | None:
    """Run a child until it fails, and say how; ``None`` if it did not before the deadline."""
    command = [sys.executable, "-m", "tests.fuzz.fuzz_record_decoder", "--child"]
    options = ["--seed", str(seed), "--first", str(first), "--keep", str(keep)]
    with subprocess.Popen(command + options) as process:
        seen, since = (first, 0), time.monotonic()
        while True:
            try:
                return f"the process ended with {process.wait(timeout=0.5)}"
            except subprocess.TimeoutExpired:
                pass
            now = time.monotonic()
            if now > deadline:
                process.kill()
                return None
            if state.numbers[:2] != seen:
                seen, since = (state.numbers[0], state.numbers[1]), now
            elif now - since > (_HUNG_S if seen[1] else _BEGIN_S):
                process.kill()
                return f"it hung for {now - since:.0f} s"


def _report(case: Case, path: Path, what: str) -> None:
    case.save(path)
    _say(f"{what}\nreplay: {sys.executable} -m tests.fuzz.fuzz_record_decoder --replay {path}")


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def main() -> int:
    """Run the command."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=1.0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--first", type=int, default=0, help="the number of the first case")
    options.add_argument("--keep", type=Path, default=Path("build/fuzz"))
    options.add_argument("--replay", type=Path)
    options.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.replay:
        _say(str(try_case(Case.from_json(chosen.replay.read_bytes()))))
        return 0
    chosen.keep.mkdir(parents=True, exist_ok=True)
    if chosen.child:
        child(chosen.seed, chosen.first, chosen.keep, State(chosen.keep / f"{chosen.seed}.state"))
        return 0
    return min(parent(chosen.seed, chosen.minutes, chosen.first, chosen.keep), 1)


if __name__ == "__main__":
    sys.exit(main())
