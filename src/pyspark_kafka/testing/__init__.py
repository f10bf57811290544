"""Contract suites for authors of adapters, and the worlds in which they run.

A suite is a class of pytest tests. A subclass provides the adapter under test::

    class TestMyFetcher(OffsetFetcherContract):
        @pytest.fixture
        def world(self) -> World:
            return MyWorld("my-client")

Needs the extra ``testing``.
"""

from __future__ import annotations

import pkgutil

from ..domain.errors import MissingDependencyError

try:
    import pytest

    # Register them before they are imported: pytest can rewrite their assertions only then.
    names = (module.name for module in pkgutil.iter_modules(__path__, f"{__name__}."))
    pytest.register_assert_rewrite(*names)
except ModuleNotFoundError as error:
    if error.name != "pytest":
        raise
    raise MissingDependencyError("pytest, which runs the contract suites,", "testing") from error

from .clock_contract import ClockContract
from .cluster_describer_contract import ClusterDescriberContract
from .dead_letters_contract import DeadLettersContract
from .epoch_channel_contract import EpochChannelContract
from .kafka_world import KafkaWorld
from .memory_world import MemoryWorld
from .metadata_log_contract import EditableLogContract, MetadataLogContract
from .offset_fetcher_contract import OffsetFetcherContract
from .query_reports_contract import LagExporterContract, ProgressListenerContract
from .rack_finder_contract import RackFinderContract, RackPlace
from .record_reader_contract import RecordReaderContract
from .record_writer_contract import RecordWriterContract
from .schema_registry_contract import SchemaRegistryContract
from .source_events_contract import SourceEventsContract
from .stream_client_contract import StreamClientContract
from .task_runner_contract import TaskRunnerContract
from .token_provider_contract import TokenIssuer, TokenProviderContract
from .transactions_contract import TransactionsContract
from .value_decoder_contract import ValueDecoderContract
from .value_encoder_contract import ValueEncoderContract
from .world import ALL, Capability, Record, World, await_until, numbered, unique_name

__all__ = [
    "ALL",
    "Capability",
    "ClockContract",
    "ClusterDescriberContract",
    "DeadLettersContract",
    "EditableLogContract",
    "EpochChannelContract",
    "KafkaWorld",
    "LagExporterContract",
    "MemoryWorld",
    "MetadataLogContract",
    "OffsetFetcherContract",
    "ProgressListenerContract",
    "RackFinderContract",
    "RackPlace",
    "Record",
    "RecordReaderContract",
    "RecordWriterContract",
    "SchemaRegistryContract",
    "SourceEventsContract",
    "StreamClientContract",
    "TaskRunnerContract",
    "TokenIssuer",
    "TokenProviderContract",
    "TransactionsContract",
    "ValueDecoderContract",
    "ValueEncoderContract",
    "World",
    "await_until",
    "numbered",
    "unique_name",
]
