"""What a session on a master of Spark has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from .finding import Finding, ok, warning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .versions import Environment

SECRET_OPTIONS: Final[Mapping[str, str]] = {
    "kafka.ssl.keystore.key": "-----BEGIN PRIVATE KEY-----",
    "schema.registry.basic.auth.user.info": "ann:word",
    "metadataPath": "s3://key:word@bucket",
}
"""Options that Spark shows by default, since it looks for *secret*, *password*, *token* and *access
key* in names and values (``SECRET_REDACTION_PATTERN``)."""


@final
@dataclass(frozen=True, slots=True)
class SparkFacts:
    """The environments of executors, and which ``SECRET_OPTIONS`` the session shows."""

    executors: Sequence[Environment]
    shown_options: Sequence[str]


def check_redaction(shown_options: Sequence[str]) -> Finding:
    """Return whether Spark hides the secrets of this library's options."""
    if not shown_options:
        return ok("redaction", "Spark hides the secrets of options")
    return warning(
        "redaction",
        f"plans, Spark's UI and its event log show {', '.join(shown_options)}",
        "Get sessions from pyspark_kafka.session(), which hides secrets, or set "
        "'spark.redaction.regex' in spark-defaults.conf as the documentation of security says.",
    )
