"""``python -m benchmarks``; processes of its own import it as well, so that it stays small."""

from __future__ import annotations

if __name__ == "__main__":
    from .command import main

    main()
