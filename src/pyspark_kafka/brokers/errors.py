"""Errors of brokers that run on this machine."""

from __future__ import annotations

from pathlib import Path

from ..domain.errors import FactsError, Fault, PysparkKafkaError, Recovery

_SHOWN_LINES = 20

_DOWNLOAD = "Check that Maven artifacts can be downloaded from this machine, and try again."


class JavaError(FactsError, OSError):
    """There is no Java that is new enough."""

    condition = "JAVA_NOT_USABLE"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.PERMANENT
    text = (
        "Java {required} or newer is required, but {found}. "
        "Install a JDK {required}, or set JAVA_HOME to one."
    )
    found: str
    required: int


class JarsError(FactsError):
    """The jars of a broker or a test could not be resolved."""

    condition = "JARS_NOT_RESOLVED"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.RETRIABLE
    text = "The jars of {what} could not be resolved: {reason}\n{advice}"
    what: str
    reason: str
    advice: str = _DOWNLOAD


class BrokerStartError(PysparkKafkaError):
    """A broker on this machine ended, or was not ready in time."""

    condition = "KAFKA_BROKER_NOT_STARTED"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.RETRIABLE

    def __init__(self, what: str, log: Path) -> None:
        super().__init__(f"{what}. The end of its log, {log}:\n{last_lines(log)}")


def last_lines(log: Path) -> str:
    """Return the last lines of a log file, for an error's message."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError as error:
        return f"({error})"
    return "\n".join(lines[-_SHOWN_LINES:]) or "(it is empty)"
