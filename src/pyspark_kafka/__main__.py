"""The command ``pyspark-kafka``, also run by ``python -m pyspark_kafka``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from .cli.parser import (
    BrokerSettings,
    DemoSettings,
    LagSettings,
    ListLettersSettings,
    ReplayLettersSettings,
    Settings,
    WarmSettings,
    parse_arguments,
)
from .domain.errors import PysparkKafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

FAILED: Final = 1
INTERRUPTED: Final = 130
"""The exit status that shells report for a command ended by SIGINT."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    settings = parse_arguments(argv)
    try:
        return _run(settings)
    except PysparkKafkaError as error:
        return _fail(f"error: {error} (who can fix it: {error.fault.value})")
    except OSError as error:
        return _fail(f"error: {error}")
    except KeyboardInterrupt:
        return _fail("Interrupted; everything is stopped.", INTERRUPTED)


def _fail(message: str, status: int = FAILED) -> int:
    print(message, file=sys.stderr)  # noqa: T201 - a command's output
    return status


def _run(settings: Settings) -> int:
    match settings:
        case DemoSettings():
            from .cli.demo import run_demo

            return run_demo(settings)
        case LagSettings():
            from .cli.lag import run_lag

            return run_lag(settings)
        case ListLettersSettings():
            from .cli.dead_letters import run_list

            return run_list(settings)
        case ReplayLettersSettings():
            from .cli.dead_letters import run_replay

            return run_replay(settings)
        case BrokerSettings():
            from .cli.broker import run_broker

            return run_broker(settings)
        case WarmSettings():
            from .cli.warm import run_warm

            return run_warm(settings)


if __name__ == "__main__":
    sys.exit(main())
