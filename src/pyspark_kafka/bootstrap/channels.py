"""The channels between the driver of a continuous query and its tasks, by their kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..domain.checkpoints.storage_path import StoragePath
    from ..domain.continuous.messages import TaskId
    from ..ports.continuous.epoch_channel import ChannelAddress, EpochChannel, TaskChannel

DIRECTORY: Final = "directory"
"""Files in a directory of a storage, for drivers that executors cannot reach."""

MEMORY: Final = "memory"
"""Queues, for tasks that are threads of the driver's process."""

SOCKET: Final = "socket"
"""TCP connections from the tasks to the driver."""


def open_channel(
    kind: str,
    *,
    bind_address: str = "127.0.0.1",
    advertised_host: str | None = None,
    directory: StoragePath | None = None,
) -> EpochChannel:
    """Return the driver's end of a new channel.

    ``bind_address`` is of this machine, and ``advertised_host`` is its name for executors; both are
    for the kind ``SOCKET``. ``directory`` is for the kind ``DIRECTORY``, which needs it.

    :raises OSError: if the address cannot be used.
    :raises MetadataLogError: if the directory cannot be written.
    :raises UnsupportedFeatureError: if its storage is not supported.
    :raises ValueError: if the kind is not known, or the directory is missing.
    """
    match kind:
        case "directory":
            from ..adapters.storage.directory_channel import DirectoryEpochChannel

            if directory is None:
                raise ValueError("a channel of the kind 'directory' needs a directory")
            return DirectoryEpochChannel(directory)
        case "socket":
            from ..adapters.epoch_channel.socket_channel import SocketEpochChannel

            return SocketEpochChannel(bind_address, advertised_host)
        case "memory":
            from ..adapters.memory.epoch_channel import MemoryEpochChannel

            return MemoryEpochChannel()
        case _:
            raise _unknown(kind)


def connect_task(address: ChannelAddress, task: TaskId) -> TaskChannel:
    """Return a task's end of the channel at an address.

    :raises DriverLostError: if the driver cannot be reached, or does not hold the key.
    :raises ValueError: if the kind of the channel is not known.
    """
    match address.kind:
        case "directory":
            from ..adapters.storage.directory_task_channel import DirectoryTaskChannel

            return DirectoryTaskChannel(address, task)
        case "socket":
            from ..adapters.epoch_channel.socket_task_channel import SocketTaskChannel

            return SocketTaskChannel(address)
        case "memory":
            from ..adapters.memory.epoch_channel import MemoryTaskChannel

            return MemoryTaskChannel(address)
        case kind:
            raise _unknown(kind)


def _unknown(kind: str) -> ValueError:
    return ValueError(f"the kind of an epoch channel is not known: {kind!r}")
