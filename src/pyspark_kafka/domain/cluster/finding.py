"""The doctor's findings: the brokers' APIs, certificates, racks and rights."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from ..security.rights import (
    DESCRIBE_BROKERS,
    Operation,
    Right,
    group_right,
    topic_right,
    transactional_id_right,
)
from .topics import REPLICA_SELECTOR


@final
@dataclass(frozen=True, slots=True)
class Environment:
    """The versions of Python and of installed packages."""

    python: str
    packages: Mapping[str, str]


class Level(enum.Enum):
    """How bad a finding is; the members are in this order."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"

    @property
    def exit_status(self) -> int:
        """The exit status of a command whose worst finding has this level.

        2 is left to wrong arguments.
        """
        return {Level.OK: 0, Level.WARNING: 3, Level.ERROR: 1}[self]


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check, and the next step; ``advice`` is empty if there is none."""

    check: str
    level: Level
    summary: str
    advice: str = ""


def ok(check: str, summary: str) -> Finding:
    """Return a finding without anything to do."""
    return Finding(check, Level.OK, summary)


def warning(check: str, summary: str, advice: str) -> Finding:
    """Return a finding that does not stop a query."""
    return Finding(check, Level.WARNING, summary, advice)


def error(check: str, summary: str, advice: str) -> Finding:
    """Return a finding that stops a query."""
    return Finding(check, Level.ERROR, summary, advice)


def worst(findings: Iterable[Finding]) -> Level:
    """Return the worst level; ``OK`` without findings."""
    order = list(Level)
    return max((each.level for each in findings), key=order.index, default=Level.OK)


_API_CHECK: Final = "api versions"


@final
@dataclass(frozen=True, slots=True)
class NeededApi:
    """A version of an API that a feature needs, and the first Kafka that has it."""

    key: int
    name: str
    version: int
    since: str
    feature: str
    is_required: bool = True


NEEDED: Final = (
    NeededApi(1, "Fetch", 4, "0.11", "reading"),
    NeededApi(0, "Produce", 3, "0.11", "writing"),
    NeededApi(2, "ListOffsets", 1, "0.10.1", "starting offsets by timestamp", is_required=False),
    NeededApi(22, "InitProducerId", 0, "0.11", "exactly-once", is_required=False),
    NeededApi(23, "OffsetForLeaderEpoch", 2, "2.1", "detecting truncated logs", is_required=False),
    NeededApi(3, "Metadata", 10, "2.8", "detecting recreated topics", is_required=False),
)


def check_apis(supported: Mapping[int, tuple[int, int]] | None) -> Iterator[Finding]:
    """Yield the APIs that the brokers are too old for, or one finding if they have all."""
    if supported is None:
        yield ok(_API_CHECK, "the client negotiates them and does not tell")
        return
    missing = [api for api in NEEDED if supported.get(api.key, (0, -1))[1] < api.version]
    for api in missing:
        summary = f"no {api.name} {api.version}, which {api.feature} needs"
        advice = f"Upgrade the brokers to Kafka {api.since} or newer."
        yield (error if api.is_required else warning)(_API_CHECK, summary, advice)
    if not missing:
        yield ok(_API_CHECK, f"all features are supported ({len(supported)} APIs)")


DAYS_LEFT: Final = 30
"""A certificate with fewer days left is a warning."""

_TLS_CHECK: Final = "tls"


@final
@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """A certificate that was verified, and how the connection is encrypted.

    ``expires_ms`` is in milliseconds since the epoch. ``chain`` are the subjects of the certificate
    and of its issuers as far as they are known.
    """

    chain: tuple[str, ...]
    expires_ms: int
    version: str
    cipher: str


def check_certificate(address: str, found: PeerCertificate, now_ms: int) -> Finding:
    """Return how long an accepted certificate is valid."""
    days = (found.expires_ms - now_ms) // 86_400_000
    chain = " < ".join(found.chain)
    summary = f"{address}: {found.version}, {chain}, {days} days left"
    if days < DAYS_LEFT:
        return warning(_TLS_CHECK, summary, "Ask the cluster's operator to renew the certificate.")
    return ok(_TLS_CHECK, summary)


_RIGHTS_CHECK: Final = "rights"


@final
@dataclass(frozen=True, slots=True)
class Principal:
    """The user, by Kafka's name if it is known, and the cluster."""

    name: str | None
    bootstrap_servers: str


_RACKS_CHECK: Final = "racks"
_LEADER_SELECTOR: Final = "org.apache.kafka.common.replica.LeaderSelector"
_SET_SELECTOR: Final = (
    f"'{REPLICA_SELECTOR}=org.apache.kafka.common.replica.RackAwareReplicaSelector'"
)

_AWS_ZONE_ID: Final = re.compile(r"[a-z]+\d+(-[a-z]+\d+)?-az\d+")
_AWS_ZONE_NAME: Final = re.compile(r"[a-z]{2}(-[a-z]+|-\d+)+-\d+[a-z]")


def check_racks(
    principal: Principal, racks: Sequence[str], selector: str | None, *, is_asked: bool
) -> Finding:
    """Return whether brokers let consumers read from the replicas in a rack (KIP-392).

    ``racks`` has the rack of each broker, or ``""``. ``selector`` is ``replica.selector.class`` of
    the brokers, ``None`` if it is not known, and ``is_asked`` is whether the options name a rack.
    """
    names = sorted({each for each in racks if each})
    where = f"the brokers are in {', '.join(names)}" if names else "the brokers have no racks"
    if names and selector is None:
        command = DESCRIBE_BROKERS.acl_command(principal.bootstrap_servers, principal.name)
        summary = f"{where}; '{REPLICA_SELECTOR}' cannot be read: {DESCRIBE_BROKERS} is missing"
        return warning(_RACKS_CHECK, summary, f"To check it: {command}")
    if not names or selector in ("", _LEADER_SELECTOR):
        if not is_asked:
            return ok(_RACKS_CHECK, f"{where}; reads go to the leaders" if names else where)
        advice = f"Ask the cluster's operator to set 'broker.rack' and {_SET_SELECTOR}."
        return warning(_RACKS_CHECK, f"{where}; reads go to the leaders all the same", advice)
    if is_asked or len(names) == 1:
        return ok(_RACKS_CHECK, f"{where}; reads may go to replicas in the same rack")
    share = f"about {len(names) - 1}/{len(names)} of the bytes read come from other racks"
    advice = "If they cost money, set 'clientRackFrom' as the documentation of zones says."
    return warning(_RACKS_CHECK, f"{where}; without a rack in the options {share}", advice)


def check_own_rack(racks: Sequence[str], option: str, rack: str) -> Finding:
    """Return whether a broker is in the rack that an option names for this host."""
    if rack in racks:
        return ok(
            _RACKS_CHECK, f"{option}: '{rack}', with {racks.count(rack)} of {len(racks)} brokers"
        )
    names = sorted({each for each in racks if each})
    advice = "Name one of the brokers' racks; case and spelling must be the same."
    if _AWS_ZONE_ID.fullmatch(rack) and any(map(_AWS_ZONE_NAME.fullmatch, names)):
        advice = "The brokers' racks are names of zones: set clientRackFrom=aws-zone-name."
    elif _AWS_ZONE_NAME.fullmatch(rack) and any(map(_AWS_ZONE_ID.fullmatch, names)):
        advice = "The brokers' racks are ids of zones: set clientRackFrom=aws."
    summary = f"{option}: no broker is in '{rack}', only in {', '.join(names)}"
    return warning(_RACKS_CHECK, f"{summary}; reads go to the leaders", advice)


def no_own_rack(option: str, reason: str) -> Finding:
    """Return the finding that an option finds no rack on this host."""
    advice = "Run doctor where executors run. If it is one of their hosts, correct what it lacks."
    return warning(_RACKS_CHECK, f"{option}: no rack was found on this host: {reason}", advice)


def check_topic(
    principal: Principal, topic: str, allowed: frozenset[Operation] | None
) -> Iterator[Finding]:
    """Yield whether the user may read a topic, and whether it may write to it.

    One of them is enough for most queries, so that the other is a warning.
    """
    features = (("read", Operation.READ), ("write, exactly-once", Operation.WRITE))
    has_any = bool(allowed and allowed & {operation for _, operation in features})
    for feature, operation in features:
        right = topic_right(operation, topic)
        yield _check_right(principal, feature, right, allowed, is_needed=not has_any)


def check_group(
    principal: Principal, group_id: str, allowed: frozenset[Operation] | None
) -> Finding:
    """Return whether the user may commit a group's offsets, and start from them."""
    feature = "commitOffsetsToGroup, startingOffsets=group, exactly-once"
    right = group_right(Operation.READ, group_id)
    return _check_right(principal, feature, right, allowed, is_needed=True)


def check_transactions(
    principal: Principal, transactional_id: str, allowed: frozenset[Operation] | None
) -> Finding:
    """Return whether the user may use a transactional id.

    ``Write`` includes ``Describe``, which is all that brokers report before a transaction begins.
    """
    right = transactional_id_right(Operation.WRITE, transactional_id)
    if allowed is not None and Operation.DESCRIBE in allowed:
        allowed |= {Operation.WRITE}
    return _check_right(principal, "deliveryGuarantee=exactly-once", right, allowed, is_needed=True)


def _check_right(
    principal: Principal,
    feature: str,
    right: Right,
    allowed: frozenset[Operation] | None,
    *,
    is_needed: bool,
) -> Finding:
    if allowed is None:
        advice = "Use the client kafka-python to check it, or brokers since 2.3."
        return warning(_RIGHTS_CHECK, f"{feature}: {right} cannot be checked", advice)
    if right.operation in allowed:
        return ok(_RIGHTS_CHECK, f"{feature}: {right}")
    command = right.acl_command(principal.bootstrap_servers, principal.name)
    summary = f"{feature}: {right} is missing"
    advice = f"If the query needs it: {command}"
    return (error if is_needed else warning)(_RIGHTS_CHECK, summary, advice)
