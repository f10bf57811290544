"""Fuzzes decoders and encoders, compiled kernels in memory that ends at forbidden pages.

A child process tries one batch after another: each is made from the seed and its number. The parent
sees that the child ends by itself, and continues after that batch. The kernels are compiled for the
fuzzers, with a check of each index.
"""

import argparse
import faulthandler
import itertools
import json
import logging
import os
import resource
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


def build_checked(keep: Path) -> None:
    """Compile kernels that check each index, if they have changed."""
    command = (sys.executable, "-m", "kernel_build", "--if-needed", "--into", keep / KERNELS)
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)


def use_checked(keep: Path) -> None:
    """Let this process call these kernels."""
    checked = load_library(keep / KERNELS, files(PACKAGE))
    patch.object(kernel, "kernel_library", lambda: checked).start()


def child(target: str, seed: int, first: int, deadline: float, keep: Path) -> None:
    """Try batches until a time; print each number before it is tried, and its reasons behind it.

    It ends by itself if one takes too long.
    """
    faulthandler.enable()
    logging.disable()
    use_checked(keep)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    seen: set[str] = set()
    for number in itertools.count(first):
        if time.time() > deadline:
            return
        faulthandler.dump_traceback_later(_HUNG_S if number > first else _BEGIN_S, exit=True)
        say(str(number))
        try:
            say(json.dumps(TRIALS[target](seed, number)))
        except Exception as error:  # noqa: BLE001  # any is a finding
            if (place := place_of(error)) not in seen:
                seen.add(place)
                say(_keep(target, seed, number, keep, traceback.format_exc()))


def parent(target: str, seed: int, minutes: float, keep: Path) -> int:
    """Start children for some time; return how many findings there are."""
    for old in keep.glob(f"{target}-*.finding"):
        old.unlink()
    build_checked(keep)
    reasons: Counter[str] = Counter()
    first, deadline = 0, time.time() + 60 * minutes
    while time.time() < deadline:
        command = [sys.executable, "-m", "verification.fuzz.batches", target, str(seed), str(first)]
        number = -1
        with subprocess.Popen(
            [*command, str(deadline), str(keep)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.strip().isdigit():
                    number = int(line)
                elif line.startswith("{"):
                    reasons.update(json.loads(line))
                else:
                    say(line.rstrip())
        if number < 0:
            sys.exit(f"the child did not begin: {process.returncode}")
        if process.returncode:
            say(_keep(target, seed, number, keep, f"the process ended with {process.returncode}"))
        first = number + 1
    findings = len(list(keep.glob(f"{target}-*.finding")))
    say(f"{reasons.total()} values, {findings} findings: {dict(reasons.most_common())}")
    return findings


def replay(target: str, path: Path, keep: Path) -> None:
    """Try the batch of a finding again."""
    build_checked(keep)
    use_checked(keep)
    seed, number = path.stem.split("-")[-2:]
    TRIALS[target](int(seed), int(number))


def _keep(target: str, seed: int, number: int, keep: Path, what: str) -> str:
    """Write a finding down, and return its line for the report."""
    path = keep / f"{target}-{seed}-{number}.finding"
    path.write_text(what, encoding="utf-8")
    return (
        f"{what}\nreplay: {sys.executable} -m verification.fuzz --target {target} --replay {path}"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("target", choices=TRIALS)
    options.add_argument("seed", type=int)
    options.add_argument("first", type=int)
    options.add_argument("deadline", type=float)
    options.add_argument("keep", type=Path)
    child(**vars(options.parse_args()))


if __name__ == "__main__":
    main()
