"""The options of a sink, as values."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from ..checkpoints.storage_path import StoragePath
from ..kafka_settings import BOOTSTRAP_SERVERS
from ..security.secret_names import hides_secrets

if TYPE_CHECKING:
    from ..kafka_settings import ProducerSettings
    from ..values.value_options import EncodedColumn, RegistryOptions, ValueOptions


class DeliveryGuarantee(enum.Enum):
    """How often a consumer of committed records sees a record of a stream."""

    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


@final
@hides_secrets
@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The options of one sink, parsed and checked. Pickled to executors.

    ``kafka`` holds the client's settings without their prefix and without the producer's own.
    It is not part of ``repr``, since it may contain secrets. ``metadata_path`` is never ``None``
    for ``EXACTLY_ONCE``; ``checkpoint`` is ``None`` if it is on another storage. ``values`` are
    the columns ``key`` and ``value`` that are encoded; ``encoded`` has those whose schemas the
    driver has settled.
    """

    client: str
    topic: str | None
    guarantee: DeliveryGuarantee
    metadata_path: StoragePath | None
    checkpoint: StoragePath | None
    transactional_id_prefix: str
    producer: ProducerSettings
    kafka: tuple[tuple[str, str], ...] = field(repr=False)
    values: tuple[ValueOptions, ...] = ()
    registry: RegistryOptions | None = None
    encoded: tuple[EncodedColumn, ...] = ()

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap servers, ``host:port`` separated by commas."""
        return dict(self.kafka)[BOOTSTRAP_SERVERS]

    @property
    def is_exactly_once(self) -> bool:
        """Whether records are written in transactions."""
        return self.guarantee is DeliveryGuarantee.EXACTLY_ONCE

    @property
    def is_log_in_checkpoint(self) -> bool:
        """Whether the sink's log is a part of the checkpoint, which must be readable then."""
        return self.checkpoint is not None and self.metadata_path == sink_log_path(self.checkpoint)


def sink_log_path(checkpoint: StoragePath) -> StoragePath:
    """Return the default of ``metadataPath``."""
    return StoragePath(
        f"{checkpoint.url.rstrip('/')}/sinks/pyspark_kafka", checkpoint.storage_options
    )
