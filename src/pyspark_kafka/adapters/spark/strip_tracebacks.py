"""Errors without the frames that led to them."""

from __future__ import annotations

import copy
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...domain.errors import PysparkKafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("pyspark_kafka")


@contextmanager
def strip_tracebacks() -> Iterator[None]:
    """Let errors of ours out without their traceback and causes.

    Spark shows its user everything that a Python worker prints of an exception: with a client's
    own exception as the cause that is a screen of frames around one line that helps. The frames
    go to the log, at level DEBUG.
    """
    try:
        yield
    except PysparkKafkaError as error:
        log.debug("Failed in Spark's Python worker", exc_info=True)
        # A copy, since contextlib gives an exception that it has seen its traceback back.
        raise copy.copy(error) from None
