"""``python -m benchmarks.alternatives``."""

from __future__ import annotations

from .command import main

if __name__ == "__main__":
    main()
