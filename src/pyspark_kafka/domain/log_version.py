"""The first line of a metadata log's files: their version."""

from __future__ import annotations


def require_version(line: str, supported: int) -> int:
    """Return the number of a version line such as ``v1``.

    :raises ValueError: with the message of Spark's ``MetadataVersionUtil``, if it is not a version
        or is above ``supported``.
    """
    number = line[1:]
    if not line.startswith("v") or not number.isdecimal() or int(number) == 0:
        raise ValueError(f"Log file was malformed: failed to read correct log version from {line}.")
    if int(number) > supported:
        raise ValueError(
            f"UnsupportedLogVersion: maximum supported log version is v{supported}, but "
            f"encountered {line}. The log file was produced by a newer version of Spark and "
            "cannot be read by this version. Please upgrade."
        )
    return int(number)
