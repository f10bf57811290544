"""Fuzzes decoders and encoders, compiled kernels in memory that ends at forbidden pages.

A child process tries one batch after another: each is made from the seed and its number. The parent
sees that the child ends by itself, or takes too long for a batch, and goes on behind it. The
kernels are compiled for the fuzzers, with a check of each index.
"""

import argparse
import faulthandler
import itertools
import logging
import os
import resource
import struct
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Final
from unittest.mock import patch

from pyspark_kafka.adapters.kernels import kernel
from pyspark_kafka.adapters.kernels.library import PACKAGE, load_library

from . import avro_batches, encoder_batches, exchange_batches, kernel_cases
from .findings import place_of, say

TRIALS: Final[dict[str, Callable[[int, int], Counter[str]]]] = {
    "kernels": kernel_cases.try_batch,
    "exchange": exchange_batches.try_batch,
    "avro": avro_batches.try_batch,
    "encode-avro": encoder_batches.try_avro,
    "encode-json": encoder_batches.try_json,
    "encode-protobuf": encoder_batches.try_protobuf,
}
"""Tries a batch by its seed and number, and returns how many values have each reason."""

KERNELS: Final = "kernels"
_HUNG_S: Final = 30.0
_BEGIN_S: Final = 300.0
_MEMORY: Final = 8 * 1024**3
_STATE: Final = struct.Struct("=q")


def build_checked(keep: Path) -> None:
    """Compile kernels that check each index, if they have changed."""
    command = (sys.executable, "-m", "kernel_build", "--if-needed", "--into", keep / KERNELS)
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)


def use_checked(keep: Path) -> None:
    """Let this process call these kernels."""
    checked = load_library(keep / KERNELS, files(PACKAGE))
    patch.object(kernel, "kernel_library", lambda: checked).start()


def child(target: str, seed: int, first: int, keep: Path) -> None:
    """Try batches until the process is killed; write each number before it is tried."""
    faulthandler.enable()
    logging.disable()
    use_checked(keep)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    reasons: Counter[str] = Counter()
    seen: set[str] = set()
    with (keep / f"{target}.state").open("wb", buffering=0) as state:
        for number in itertools.count(first):
            state.seek(0)
            state.write(_STATE.pack(number))
            try:
                reasons += TRIALS[target](seed, number)
            except Exception as error:  # noqa: BLE001  # any is a finding
                if (place := place_of(error)) not in seen:
                    seen.add(place)
                    _report(target, seed, number, keep, traceback.format_exc())
            if number % 100 == 0:
                path = keep / f"{target}.{first}.reasons"
                path.write_text(" ".join(f"{name}={count}" for name, count in reasons.items()))


def parent(target: str, seed: int, minutes: float, keep: Path) -> int:
    """Start children for some time; return how many findings there are."""
    for old in (*keep.glob(f"{target}.*"), *keep.glob(f"{target}-*.finding")):
        old.unlink()
    build_checked(keep)
    first, deadline = 0, time.monotonic() + 60 * minutes
    while time.monotonic() < deadline:
        ended = _watch(target, seed, first, keep, deadline)
        if ended is None:
            break
        first = _number(target, keep)
        if first < 0:
            sys.exit(f"the child did not begin: {ended}")
        _report(target, seed, first, keep, ended)
        first += 1
    reasons: Counter[str] = Counter()
    for path in keep.glob(f"{target}.*.reasons"):
        for pair in path.read_text().split():
            name, _, count = pair.partition("=")
            reasons[name] += int(count)
    findings = len(list(keep.glob(f"{target}-*.finding")))
    say(f"{reasons.total()} values, {findings} findings: {dict(reasons.most_common())}")
    return findings


def replay(target: str, path: Path, keep: Path) -> None:
    """Try the batch of a finding again."""
    build_checked(keep)
    use_checked(keep)
    seed, number = path.stem.split("-")[-2:]
    TRIALS[target](int(seed), int(number))


def _number(target: str, keep: Path) -> int:
    path = keep / f"{target}.state"
    data = path.read_bytes() if path.exists() else b""
    return int(_STATE.unpack(data)[0]) if len(data) == _STATE.size else -1


def _watch(target: str, seed: int, first: int, keep: Path, deadline: float) -> str | None:
    """Run a child until it fails, and say how; ``None`` if it did not before the deadline."""
    command = [sys.executable, "-m", "tests.fuzz.batches", target, str(seed), str(first)]
    with subprocess.Popen([*command, str(keep)]) as process:
        seen, since = -1, time.monotonic()
        while True:
            try:
                return f"the process ended with {process.wait(timeout=0.5)}"
            except subprocess.TimeoutExpired:
                number, now = _number(target, keep), time.monotonic()
            if now > deadline:
                process.kill()
                return None
            if number != seen:
                seen, since = number, now
            elif now - since > (_BEGIN_S if number <= first else _HUNG_S):
                process.kill()
                return f"it hung for {now - since:.0f} s"


def _report(target: str, seed: int, number: int, keep: Path, what: str) -> None:
    path = keep / f"{target}-{seed}-{number}.finding"
    path.write_text(what, encoding="utf-8")
    say(f"{what}\nreplay: {sys.executable} -m tests.fuzz --target {target} --replay {path}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("target", choices=TRIALS)
    options.add_argument("seed", type=int)
    options.add_argument("first", type=int)
    options.add_argument("keep", type=Path)
    chosen = options.parse_args()
    child(chosen.target, chosen.seed, chosen.first, chosen.keep)


if __name__ == "__main__":
    main()
