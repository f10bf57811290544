"""The command ``pyspark-kafka``, also run by ``python -m pyspark_kafka``."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Final

from .cli.output import ending_signals, prepare_output
from .cli.parser import command_parser
from .domain.errors import PysparkKafkaError
from .domain.text import one_line

FAILED: Final = 1
SIGNALED: Final = 128
"""The number that shells add to a signal's for the exit status of a command that it ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status.

    Exit with a message if the arguments are wrong or ask for help.
    """
    prepare_output()
    given = command_parser().parse_args(argv)
    try:
        with ending_signals():
            status: int = given.run(given)
    except PysparkKafkaError as error:
        return _fail(f"error: {one_line(str(error))} (who can fix it: {error.fault.value})")
    except OSError as error:
        return _fail(f"error: {one_line(str(error))}")
    except KeyboardInterrupt as interrupt:
        number = interrupt.args[0] if interrupt.args else signal.SIGINT
        return _fail("Interrupted; everything is stopped.", SIGNALED + number)
    return status


def _fail(message: str, status: int = FAILED) -> int:
    print(message, file=sys.stderr)  # noqa: T201 - a command's output
    return status


if __name__ == "__main__":
    sys.exit(main())
