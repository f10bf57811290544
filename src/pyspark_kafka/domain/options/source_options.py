"""The options of a source, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from ..kafka_settings import BOOTSTRAP_SERVERS, GROUP_ID, ISOLATION_LEVEL, READ_COMMITTED
from ..reading.record_limits import RecordLimits
from ..reading.task_limits import TaskLimits
from ..security.secret_names import hides_secrets

if TYPE_CHECKING:
    from ..checkpoints.storage_path import StoragePath
    from ..reading.offset_limits import EndingOffsets, StartingOffsets
    from ..reading.projection import Projection
    from ..reading.read_limits import ReadLimit
    from ..subscription import Subscription
    from ..values.value_options import RegistryOptions, ValueOptions


@final
@hides_secrets
@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of one query, parsed and checked. Pickled to executors.

    ``kafka`` holds the client's settings without their prefix. It is not part of ``repr``, since
    it may contain secrets. ``values`` are the columns ``key`` and ``value`` that are decoded.
    """

    client: str
    subscription: Subscription
    starting_offsets: StartingOffsets
    ending_offsets: EndingOffsets
    fail_on_data_loss: bool
    projection: Projection
    read_limit: ReadLimit
    min_partitions: int | None
    max_partitions: int | None
    max_records_per_partition: int | None
    max_record_bytes: int
    max_record_headers: int
    max_record_header_bytes: int
    skip_oversized_records: bool
    poll_timeout_ms: int
    fetch_attempts: int
    fetch_retry_interval_ms: int
    metadata_ttl_ms: int
    allow_limits_without_trigger: bool
    push_filters: bool
    metadata_path: StoragePath | None
    commit_offsets_to_group: str | None
    kafka: tuple[tuple[str, str], ...] = field(repr=False)
    values: tuple[ValueOptions, ...] = ()
    registry: RegistryOptions | None = None
    dead_letter_topic: str | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap servers, ``host:port`` separated by commas."""
        return dict(self.kafka)[BOOTSTRAP_SERVERS]

    @property
    def record_limits(self) -> RecordLimits:
        """The limits of a record's size."""
        return RecordLimits(
            self.max_record_bytes,
            self.max_record_headers,
            self.max_record_header_bytes,
            self.skip_oversized_records,
        )

    @property
    def task_limits(self) -> TaskLimits:
        """How the offsets of a batch are divided among tasks."""
        return TaskLimits(self.min_partitions, self.max_partitions, self.max_records_per_partition)

    @property
    def group_id(self) -> str | None:
        """The consumer group that the user set, if any."""
        return dict(self.kafka).get(GROUP_ID)

    @property
    def reads_committed_only(self) -> bool:
        """Whether records of open and aborted transactions are skipped."""
        return dict(self.kafka).get(ISOLATION_LEVEL) == READ_COMMITTED
