"""The version of this package, for adapters too: they do not import the package itself."""

from __future__ import annotations

from typing import Final

__version__: Final = "0.1.0"
