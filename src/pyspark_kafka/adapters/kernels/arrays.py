"""The arrays that kernels take, by their numpy types."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
BoolArray: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
UInt8Array: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
UInt64Array: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
Int32Array: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
Int64Array: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
