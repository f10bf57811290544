"""The versions of this process."""

from __future__ import annotations

import platform
import socket
from importlib import metadata

from ...domain.cluster.versions import REPORTED, Environment


def environment() -> Environment:
    """Return the versions of Python and of the packages that matter."""
    found = {}
    for name in REPORTED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return Environment(socket.gethostname(), platform.python_version(), found)
