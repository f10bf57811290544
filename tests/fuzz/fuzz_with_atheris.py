"""Fuzzes the decoder of record batches, led by what of its Python parts a case has reached.

    pip install atheris
    python -m tests.fuzz.fuzz_with_atheris -max_total_time=600 build/fuzz/corpus

The options are libFuzzer's; a case that fails is written to a file, and given as an argument it is
replayed. The kernels are machine code, and unknown to it; ``fuzz_record_decoder`` is for them.
"""

from __future__ import annotations

import random
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from types import ModuleType

_FORMAT: Final = "pyspark_kafka.adapters.kafka_format"
_KERNELS: Final = ("decode_kernel", "legacy_kernel")


class Dice(random.Random):
    """Falls as bytes say, and on zero when they are at their end."""

    def __init__(self, provider: Any) -> None:
        super().__init__(0)
        self._provider = provider

    def random(self) -> float:
        """Return a number in [0, 1)."""
        return float(self._provider.ConsumeIntInRange(0, 255)) / 256

    def getrandbits(self, k: int, /) -> int:
        """Return a number of some bits."""
        size = (k + 7) // 8
        taken = bytes(self._provider.ConsumeBytes(size)).ljust(size, b"\0")
        return int.from_bytes(taken) & ((1 << k) - 1)


def main(atheris: ModuleType) -> None:
    """Run libFuzzer, which does not come back."""
    for kernel in _KERNELS:
        import_module(f"{_FORMAT}.{kernel}")  # and what is compiled into it: that stays as it is
    with atheris.instrument_imports(include=[_FORMAT]):
        inputs = import_module(f"{__package__}.inputs")
        trial = import_module(f"{__package__}.trial")

    def try_one(data: bytes) -> None:
        trial.try_case(inputs.case_from(Dice(atheris.FuzzedDataProvider(data))))

    atheris.Setup(sys.argv, try_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(import_module("atheris"))
