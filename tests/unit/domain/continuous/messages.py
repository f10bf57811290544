from typing import Final

from pyspark_kafka.domain.continuous.messages import (
    AssignPartitions,
    RevokePartitions,
    StopTask,
    TaskDrained,
    TaskFailed,
    TaskId,
    TaskLostData,
    TaskReport,
    TaskStarted,
)
from pyspark_kafka.domain.continuous.progress import LatencyHistogram, TaskProgress
from pyspark_kafka.domain.partition_offsets import PartitionOffsets
from pyspark_kafka.domain.reading.data_loss import DataLoss
from pyspark_kafka.domain.topic_partition import TopicPartition
from pyspark_kafka.domain.values.errors import BadRecordStats, FailureReason

TASK: Final = TaskId(1, 2, "0.1")
OFFSETS: Final = PartitionOffsets({TopicPartition("t", 0): 5, TopicPartition("u", 3): 2**40})

MESSAGES: Final = (
    TaskStarted(TASK, "host", 42),
    TaskReport(TASK, OFFSETS, TaskProgress(3, 4, LatencyHistogram.of([1, 500]))),
    TaskReport(
        TASK,
        OFFSETS,
        TaskProgress(3, bad_records=BadRecordStats({FailureReason.BAD_ENUM: 2}, dead_letters=1)),
    ),
    TaskLostData(TASK, DataLoss("CONDITION", "reason", "warning\nwith lines", "advice")),
    TaskFailed(TASK, "KAFKA_X", "it failed", is_permanent=True),
    TaskDrained(TASK),
)
COMMANDS: Final = (AssignPartitions(OFFSETS), RevokePartitions(OFFSETS), StopTask())
