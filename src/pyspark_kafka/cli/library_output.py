"""Where log lines and warnings of libraries go, of which the screen is to have none."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def library_output_to(handler: logging.Handler) -> Iterator[None]:
    """Let the log lines and warnings of this process go to a handler, and close it at the end."""
    root = logging.getLogger()
    root.addHandler(handler)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.removeHandler(handler)
        handler.close()
