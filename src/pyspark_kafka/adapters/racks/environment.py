"""The rack in the environment of the process."""

from __future__ import annotations

import os
from typing import Final, final

from ...domain.reading.racks import RackNotFoundError, checked_rack
from ...ports.reading import RackFinder

VARIABLE: Final = "KAFKA_CLIENT_RACK"
"""No option names another variable: a query must not read arbitrary ones."""


@final
class EnvironmentRackFinder(RackFinder):
    """Reads a variable of this process."""

    def find(self) -> str:
        asked = f"the variable {VARIABLE} of this process"
        text = os.environ.get(VARIABLE)
        if text is None:
            raise RackNotFoundError(asked, "it is not set")
        return checked_rack(asked, text.strip())
