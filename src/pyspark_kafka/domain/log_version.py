"""The line at the head of a metadata log's files that names their version."""

from __future__ import annotations


def require_version(line: str, supported: int) -> int:
    """Read ``v1``, and give the number.

    :raises ValueError: in the words of Spark's ``MetadataVersionUtil``, if it is no version, or
        one above ``supported``.
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
