import re

import pytest


def log_lines(caplog: pytest.LogCaptureFixture, logger: str) -> list[str]:
    """Return the messages of a logger in the current test."""
    return [record.getMessage() for record in caplog.records if record.name == logger]


def last_number(lines: list[str], pattern: str) -> int | None:
    """Return the first group of the last line that begins with a pattern."""
    found = [int(match[1]) for line in lines if (match := re.match(pattern, line))]
    return found[-1] if found else None
