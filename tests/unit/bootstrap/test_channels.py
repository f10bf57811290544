import pickle

import pytest

from pyspark_kafka.bootstrap.continuous import connect_task, open_channel
from pyspark_kafka.domain.checkpoints.storage_path import StoragePath
from pyspark_kafka.domain.continuous.messages import TaskDrained, TaskId
from pyspark_kafka.ports.continuous import ChannelAddress

TASK = TaskId(1, 0, "0.0")


@pytest.mark.parametrize("kind", ["directory", "memory", "socket"])
def test_a_task_connects_to_the_address_of_a_channel(kind, tmp_path):
    channel = open_channel(kind, directory=StoragePath(str(tmp_path)))
    task = connect_task(pickle.loads(pickle.dumps(channel.address)), TASK)  # noqa: S301
    task.send(TaskDrained(TASK))
    assert list(channel.receive(10.0)) == [TaskDrained(TASK)]
    task.close()
    channel.close()


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="not known: 'pigeon'"):
        open_channel("pigeon")
    with pytest.raises(ValueError, match="needs a directory"):
        open_channel("directory")
    with pytest.raises(ValueError, match="not known: 'pigeon'"):
        connect_task(ChannelAddress("pigeon", "", b""), TASK)
