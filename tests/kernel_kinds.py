"""Whether kernels are called with arguments of the kinds that they are compiled for."""

from collections.abc import Sequence

import numpy as np

from pyspark_kafka.adapters.kernels.kernel import Kind


def require_kinds(arguments: Sequence[object], kinds: Sequence[Kind]) -> None:
    """Raise ``AssertionError`` if arguments are of other kinds."""
    for argument, kind in zip(arguments, kinds, strict=True):
        if isinstance(kind, tuple):
            assert isinstance(argument, tuple), f"{argument!r} is no tuple"
            require_kinds(argument, kind)
        elif isinstance(argument, np.ndarray):
            may_be_const = "const " if kind.startswith("const ") else ""
            found = f"{may_be_const}{argument.dtype}[{',' * (argument.ndim - 1)}]"
            assert found == kind
            assert may_be_const or argument.flags.writeable
        else:
            assert kind == "int64"
            assert isinstance(argument, (int, np.integer))
