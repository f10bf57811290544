"""The base of all errors, and those that every capability has.

    PysparkKafkaError
    ├── OptionsError               options are invalid
    ├── DisallowedOptionError      the operator forbids an option
    ├── OptionPolicyError          an operator's list is invalid
    ├── KernelLibraryError         the package's machine code cannot be used
    ├── MissingDependencyError     an optional package is not installed
    ├── BrokerUnreachableError     no broker answered in time
    ├── UnknownTopicError          a topic does not exist
    ├── KafkaRequestError          a broker refused a request
    │   ├── InvalidResponseError   a broker's response breaks the protocol
    │   └── LeaderUnavailableError the broker that a request has to go to is not available
    ├── MetadataLogError           a metadata log cannot be read or written
    │   └── NoCheckpointError      a command was given a path without a checkpoint
    ├── DriverLostError            a task of a continuous query has lost its driver
    └── UnsupportedFeatureError    a client, storage or Spark lacks a feature

The errors of a capability are in its ``errors``: ``reading``, ``writing``, ``security``,
``values``, ``continuous``. Errors that one module alone raises are defined there. A message holds
the condition in brackets, the facts, and what to do next, because Spark wraps what a Python source
raises and only the text reaches the user.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, Final, dataclass_transform

from .security.secrets import without_secrets

MAX_NAMED: Final = 5
"""How many names a message lists; there may be thousands."""


class Fault(enum.Enum):
    """The party that can fix an error."""

    USER = "the query's author"
    CLUSTER = "the Kafka cluster's operator"
    DATA = "the records' producer, or the topic's retention"
    ENVIRONMENT = "the machine's administrator"


class Recovery(enum.Enum):
    """Whether a new attempt helps."""

    RETRIABLE = "a new attempt may succeed"
    PERMANENT = "a new attempt fails again, until somebody removes the cause"
    FATAL = "another run has taken over, so this one has to stop and change nothing"


class PysparkKafkaError(Exception):
    """The base of every error: a condition, a message made of facts, and a next step.

    Each class states its ``recovery``; errors of other packages are retriable by default.
    """

    condition: ClassVar[str]
    fault: Fault
    recovery: ClassVar[Recovery] = Recovery.RETRIABLE
    tolerated_by: ClassVar[tuple[str, ...]] = ()
    """The settings that let a query count or report such records instead."""

    sql_state: ClassVar[str | None] = None

    def __init__(self, message: str, sub_condition: str = "") -> None:
        message = without_secrets(message)
        condition = f"{self.condition}.{sub_condition}" if sub_condition else self.condition
        super().__init__(f"[{condition}] {message}")
        self.message = message

    @property
    def is_retriable(self) -> bool:
        """Whether a new attempt may succeed."""
        return self.recovery is Recovery.RETRIABLE

    def __reduce__(self) -> tuple[type[PysparkKafkaError], tuple[object, ...], dict[str, object]]:
        # Subclasses take facts, not a message: rebuild without their constructor, so that an
        # error survives the pickle between Spark's processes.
        return _rebuild, (type(self), self.args), self.__dict__  # type: ignore[return-value]


def _rebuild(kind: type[PysparkKafkaError], args: tuple[object, ...]) -> PysparkKafkaError:
    error = kind.__new__(kind, *args)
    Exception.__init__(error, *args)
    if isinstance(error, ImportError):
        error.msg = str(args[0])
    return error


@dataclass_transform(eq_default=False)
class FactsError(PysparkKafkaError):
    """An error whose message states its facts: annotated attributes, which the constructor takes.

    ``text`` is the message, with the names of facts in braces.
    """

    text: ClassVar[str]
    _facts: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = (name for name, kind in cls.__annotations__.items() if "ClassVar" not in kind)
        cls._facts = (*cls._facts, *own)

    def __init__(self, *facts: object, **named: object) -> None:
        given = {**dict(zip(self._facts, facts, strict=False)), **named}
        # They are pickled with the error, and a client's text may contain a secret.
        self.__dict__ |= {
            name: without_secrets(fact) if isinstance(fact, str) else fact
            for name, fact in given.items()
        }
        super().__init__(self.text.format_map({name: getattr(self, name) for name in self._facts}))


class OptionsError(PysparkKafkaError, ValueError):
    """One or more options are invalid; ``problems`` holds a message for each."""

    condition = "KAFKA_INVALID_OPTIONS"
    fault = Fault.USER
    recovery = Recovery.PERMANENT

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(map(without_secrets, problems))
        if not self.problems:
            raise ValueError("an OptionsError names at least one problem")
        if len(self.problems) == 1:
            super().__init__(self.problems[0])
        else:
            lines = "".join(f"\n  - {problem}" for problem in self.problems)
            super().__init__(f"{len(self.problems)} options cannot be used:{lines}")


class DisallowedOptionError(PysparkKafkaError, ValueError):
    """The operator of this Spark installation forbids settings of Kafka.

    ``options`` has their names, without the prefix ``kafka.``, with the place that lists each.
    """

    condition = "KAFKA_DISALLOWED_OPTION"
    fault = Fault.USER
    recovery = Recovery.PERMANENT

    def __init__(self, options: Mapping[str, str], prefix: str = "kafka.") -> None:
        self.options = dict(options)
        # The words of KAFKA_DISALLOWED_OPTION in Spark's kafka-error-conditions.json (SPARK-59328).
        lines = (
            f"The Kafka option '{prefix}{name}' is not allowed because it is listed in {place}."
            for name, place in self.options.items()
        )
        super().__init__(
            "\n".join(
                (*lines, "Remove it from the query, or ask the operator of Spark to allow it.")
            )
        )


class OptionPolicyError(FactsError, ValueError):
    """An operator's list has an entry without effect; ``rule`` describes valid entries."""

    condition = "KAFKA_INVALID_OPTION_POLICY"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.PERMANENT

    # Spark's setting has this sentence (StaticSQLConf, SPARK-59328).
    NAMES: ClassVar[str] = "Kafka option names must be listed without the 'kafka.' prefix."
    text = (
        "No query can run: {place} lists '{entry}'. {rule} "
        "Ask the operator of Spark to correct the list."
    )
    place: str
    entry: str
    rule: str = NAMES


class MissingDependencyError(PysparkKafkaError, ImportError):
    """An optional package is not installed: ``extra`` installs it or, without one, ``package``."""

    condition = "KAFKA_MISSING_DEPENDENCY"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.PERMANENT

    def __init__(self, what: str, extra: str = "", *, package: str = "") -> None:
        wanted = f"'pyspark-kafka[{extra}]'" if extra else package
        super().__init__(f"{what} is not installed. Install it with: pip install {wanted}")


class KernelLibraryError(FactsError, ImportError):
    """The library of machine code cannot be used; ``remedy`` is how to get one."""

    condition = "KAFKA_KERNEL_LIBRARY"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.PERMANENT
    text = "The library of kernels cannot be used: {problem}. {remedy}"
    problem: str
    remedy: str


@contextmanager
def requires_extra(extra: str, module: str, what: str) -> Iterator[None]:
    """Raise ``MissingDependencyError`` if an import within does not find ``module``."""
    try:
        yield
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != module:
            raise
        raise MissingDependencyError(what, extra) from error


class BrokerUnreachableError(PysparkKafkaError, ConnectionError):
    """No broker answered in time; ``cause`` is the client's, such as a failed TLS handshake.

    ``is_hung_up`` is whether listeners close each connection before they answer.
    """

    condition = "KAFKA_BROKER_UNREACHABLE"
    fault = Fault.CLUSTER
    recovery = Recovery.RETRIABLE

    def __init__(
        self,
        bootstrap_servers: str,
        seconds: float,
        cause: str = "",
        *,
        is_hung_up: bool = False,
    ) -> None:
        within = f" within {seconds:g} s" if seconds else ""
        reason = f" ({cause})" if cause else ""
        advice = (
            "Check the option 'kafka.bootstrap.servers', that the brokers are running, and that "
            "this machine can reach their advertised listeners."
        )
        if is_hung_up:
            self.fault = Fault.USER
            advice = (
                "The listener may expect TLS or a login: set 'kafka.security.protocol', and the "
                "options 'kafka.ssl.*' and 'kafka.sasl.*' that it needs."
            )
        elif portless := _without_port(bootstrap_servers):
            self.fault = Fault.USER
            advice = f"'{portless}' has no port, so 9092 was tried: write host:port. {advice}"
        super().__init__(
            f"No Kafka broker answered at {bootstrap_servers}{within}{reason}. {advice}"
        )


def _without_port(bootstrap_servers: str) -> str:
    """Return the first server whose port was forgotten, if there is one."""
    servers = map(str.strip, bootstrap_servers.split(","))
    return next((each for each in servers if not re.search(r":\d+$", each)), "")


class UnknownTopicError(PysparkKafkaError, LookupError):
    """Topics do not exist; ``option`` is the one that named them."""

    condition = "KAFKA_UNKNOWN_TOPIC"
    fault = Fault.USER
    recovery = Recovery.PERMANENT

    def __init__(self, topics: Sequence[str], option: str, bootstrap_servers: str) -> None:
        self.topics = tuple(topics)
        names = ", ".join(f"'{topic}'" for topic in topics)
        plural, verb = ("s", "do") if len(topics) > 1 else ("", "does")
        # A sink's topic may be named by each row instead.
        place = "option or column" if option == "topic" else "option"
        super().__init__(
            f"Topic{plural} {names} {verb} not exist at {bootstrap_servers}. "
            f"Create the topic{plural}, or correct the {place} '{option}'."
        )


class KafkaRequestError(PysparkKafkaError):
    """A broker refused a request, and retries did not help.

    ``request`` is a noun with its article, such as ``a request for offsets``; ``reason`` is the
    broker's. ``outcome`` is the verb, where nothing was refused.
    """

    condition = "KAFKA_REQUEST_FAILED"
    fault = Fault.CLUSTER
    recovery = Recovery.RETRIABLE

    def __init__(self, request: str, reason: str, *, outcome: str = "refused") -> None:
        next_step = "See the brokers' logs."
        if outcome == "refused":
            next_step = (
                "If permissions (ACLs) are missing, grant them to the query's Kafka user; "
                "otherwise see the brokers' logs."
            )
        super().__init__(f"Kafka {outcome} {request}: {reason.rstrip('.')}. {next_step}")


class InvalidResponseError(KafkaRequestError):
    """A broker's response breaks Kafka's protocol, and retries did not help.

    ``request`` is a noun with its article; ``problem`` is what is wrong with the response.
    """

    condition = "KAFKA_INVALID_RESPONSE"
    recovery = Recovery.RETRIABLE

    def __init__(self, request: str, problem: str) -> None:
        PysparkKafkaError.__init__(
            self,
            f"Kafka answered {request} with an invalid response: {problem.rstrip('.')}. Check that "
            "'kafka.bootstrap.servers' and the brokers' advertised listeners name Kafka brokers, "
            "and that no proxy in between changes responses. Otherwise, see the brokers' logs.",
        )


class LeaderUnavailableError(KafkaRequestError):
    """The broker that a request has to go to is not available, and retries did not help.

    ``request`` is a noun with its article; ``reason`` is the client's.
    """

    condition = "KAFKA_LEADER_UNAVAILABLE"
    recovery = Recovery.RETRIABLE

    def __init__(self, request: str, reason: str) -> None:
        PysparkKafkaError.__init__(
            self,
            f"No broker can serve {request}: {reason.rstrip('.')}. Ask the cluster's operator to "
            "start the missing brokers, and to check that each of them advertises the listener "
            "that 'kafka.bootstrap.servers' uses: 'kafka-topics.sh --describe "
            "--unavailable-partitions' lists the partitions without a leader.",
        )


class MetadataLogError(FactsError):
    """A metadata log cannot be read or written.

    ``problem`` is what happened and what to do next; ``path`` is the file, without credentials.
    """

    condition = "KAFKA_METADATA_LOG"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.RETRIABLE
    text = "{problem} ({path})"
    path: str
    problem: str


class NoCheckpointError(MetadataLogError):
    """The checkpoint that a command names does not exist, or lacks what the command needs."""

    condition = "KAFKA_NO_CHECKPOINT"
    fault = Fault.USER
    recovery = Recovery.PERMANENT


class DriverLostError(FactsError, ConnectionError):
    """A task of a continuous query has lost the connection to its driver."""

    condition = "KAFKA_DRIVER_LOST"
    fault = Fault.ENVIRONMENT
    recovery = Recovery.RETRIABLE
    text = (
        "A task of a continuous query has lost its driver and ends: {reason}. The driver runs "
        "the task again if it lives; otherwise start the query again."
    )
    reason: str


class UnsupportedFeatureError(FactsError, NotImplementedError):
    """A client, a storage or Spark lacks a feature: "``adapter`` cannot ``feature``"."""

    condition = "KAFKA_UNSUPPORTED_FEATURE"
    fault = Fault.USER
    recovery = Recovery.PERMANENT
    text = "{adapter} cannot {feature}."
    adapter: str
    feature: str
