"""Whether brokers support the requests that features need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from .finding import Finding, error, ok, warning

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CHECK: Final = "api versions"


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
    """Yield what the brokers are too old for, or one finding if that is nothing."""
    if supported is None:
        yield ok(_CHECK, "the client negotiates them and does not tell")
        return
    missing = [api for api in NEEDED if supported.get(api.key, (0, -1))[1] < api.version]
    for api in missing:
        summary = f"no {api.name} {api.version}, which {api.feature} needs"
        advice = f"Upgrade the brokers to Kafka {api.since} or newer."
        yield (error if api.is_required else warning)(_CHECK, summary, advice)
    if not missing:
        yield ok(_CHECK, f"all features are supported ({len(supported)} APIs)")
