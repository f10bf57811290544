"""``python -m pyspark_kafka``, and the command ``pyspark-kafka``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from .cli.parser import BrokerSettings, DemoSettings, LagSettings, parse_arguments
from .domain.errors import PysparkKafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

FAILED: Final = 1
INTERRUPTED: Final = 130
"""What a shell reports of a command that SIGINT ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, and give its exit status."""
    settings = parse_arguments(argv)
    try:
        return _run(settings)
    except PysparkKafkaError as error:
        print(f"error: {error.message}", file=sys.stderr)  # noqa: T201 - a command's answer
        return FAILED
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return FAILED
    except KeyboardInterrupt:
        print("Interrupted; everything is stopped.", file=sys.stderr)  # noqa: T201
        return INTERRUPTED


def _run(settings: BrokerSettings | DemoSettings | LagSettings) -> int:
    match settings:
        case DemoSettings():
            from .cli.demo import run_demo

            return run_demo(settings)
        case LagSettings():
            from .cli.lag import run_lag

            return run_lag(settings)
        case BrokerSettings():
            from .cli.broker import run_broker

            return run_broker(settings)


if __name__ == "__main__":
    sys.exit(main())
