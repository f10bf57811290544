"""``python -m benchmarks``; spawned processes import this module too, so it stays small."""

from __future__ import annotations

if __name__ == "__main__":
    from .command import main

    main()
