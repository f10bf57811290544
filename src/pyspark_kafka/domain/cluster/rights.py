"""Whether the user has the rights that features need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ..security.rights import Operation, Right, group_right, topic_right, transactional_id_right
from .finding import Finding, error, ok, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHECK: Final = "rights"


@final
@dataclass(frozen=True, slots=True)
class Principal:
    """The user, by Kafka's name if it is known, and the cluster."""

    name: str | None
    bootstrap_servers: str


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
        yield _check(principal, feature, right, allowed, is_needed=not has_any)


def check_group(
    principal: Principal, group_id: str, allowed: frozenset[Operation] | None
) -> Finding:
    """Return whether the user may commit a group's offsets, and start from them."""
    feature = "commitOffsetsToGroup, startingOffsets=group, exactly-once"
    right = group_right(Operation.READ, group_id)
    return _check(principal, feature, right, allowed, is_needed=True)


def check_transactions(
    principal: Principal, transactional_id: str, allowed: frozenset[Operation] | None
) -> Finding:
    """Return whether the user may use a transactional id.

    ``Write`` includes ``Describe``, which is all that brokers tell before a transaction begins.
    """
    right = transactional_id_right(Operation.WRITE, transactional_id)
    if allowed is not None and Operation.DESCRIBE in allowed:
        allowed |= {Operation.WRITE}
    return _check(principal, "deliveryGuarantee=exactly-once", right, allowed, is_needed=True)


def _check(
    principal: Principal,
    feature: str,
    right: Right,
    allowed: frozenset[Operation] | None,
    *,
    is_needed: bool,
) -> Finding:
    if allowed is None:
        advice = "Use the client kafka-python to check it, or brokers since 2.3."
        return warning(_CHECK, f"{feature}: {right} cannot be checked", advice)
    if right.operation in allowed:
        return ok(_CHECK, f"{feature}: {right}")
    command = right.acl_command(principal.bootstrap_servers, principal.name)
    summary = f"{feature}: {right} is missing"
    advice = f"If the query needs it: {command}"
    return (error if is_needed else warning)(_CHECK, summary, advice)
