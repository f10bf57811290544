import pytest

from pyspark_kafka.adapters.continuous.directory_channel import (
    DirectoryEpochChannel,
    DirectoryTaskChannel,
)
from pyspark_kafka.adapters.continuous.socket_channel import SocketEpochChannel
from pyspark_kafka.adapters.continuous.socket_task_channel import SocketTaskChannel
from pyspark_kafka.adapters.continuous.threads import MemoryEpochChannel, MemoryTaskChannel
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.continuous.messages import TaskId
from pyspark_kafka.ports.continuous import ChannelAddress, EpochChannel, TaskChannel
from pyspark_kafka.testing import EpochChannelContract


class TestMemory(EpochChannelContract):
    driver_timeout_s = 0.2
    can_be_silent = False

    def open_channel(self) -> EpochChannel:
        return MemoryEpochChannel()

    def connect(self, address: ChannelAddress, _task: TaskId) -> TaskChannel:
        return MemoryTaskChannel(address)


class TestSocket(EpochChannelContract):
    driver_timeout_s = 2.0

    def open_channel(self) -> EpochChannel:
        return SocketEpochChannel(ping_interval_s=0.1)

    def open_silent_channel(self) -> EpochChannel:
        return SocketEpochChannel(ping_interval_s=3_600)

    def connect(self, address: ChannelAddress, _task: TaskId) -> TaskChannel:
        return SocketTaskChannel(address, driver_timeout_s=self.driver_timeout_s)


class DirectoryContract(EpochChannelContract):
    """The contract for a directory; a subclass provides it."""

    driver_timeout_s = 2.5
    path: StoragePath

    def open_channel(self) -> EpochChannel:
        return DirectoryEpochChannel(self.path, heartbeat_interval_s=0.2)

    def open_silent_channel(self) -> EpochChannel:
        return DirectoryEpochChannel(self.path, heartbeat_interval_s=3_600)

    def connect(self, address: ChannelAddress, task: TaskId) -> TaskChannel:
        return DirectoryTaskChannel(address, task, driver_timeout_s=self.driver_timeout_s)


class TestLocalDirectory(DirectoryContract):
    @pytest.fixture(autouse=True)
    def _at_a_path(self, tmp_path):
        self.path = StoragePath(f"{tmp_path}/checkpoint/channel")


class TestMemoryDirectory(DirectoryContract):
    @pytest.fixture(autouse=True)
    def _at_a_path(self, fresh_name):
        self.path = StoragePath(f"memory://{fresh_name()}/channel")
