import pytest

from pyspark_kafka.domain.continuous.messages import (
    MAX_TEXT,
    TaskFailed,
    read_command,
    read_message,
    write_command,
    write_message,
)
from pyspark_kafka.domain.continuous.progress import LatencyHistogram, TaskProgress
from pyspark_kafka.domain.continuous.settings import ContinuousSettings
from pyspark_kafka.domain.values.errors import BadRecordStats, FailureReason

from .messages import COMMANDS, MESSAGES, TASK


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_survive_json(message):
    assert read_message(write_message(message)) == message
    assert "\n" not in write_message(message)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_survive_json(command):
    assert read_command(write_command(command)) == command


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"type":[]}',
        '{"type":"TaskReport"}',
        '{"type":"TaskDrained","generation":true,"slot":0,"attempt":"a"}',
        '{"type":"TaskDrained","generation":1,"slot":0,"attempt":1}',
        '{"type":"StopTask","generation":1,"slot":0,"attempt":"a"}',
        '{"type":"TaskReport","generation":1,"slot":0,"attempt":"a","offsets":{"t":[]}}',
        '{"type":"TaskReport","generation":1,"slot":0,"attempt":"a","offsets":{"t":{"0":"1"}}}',
        (
            '{"type":"TaskReport","generation":1,"slot":0,"attempt":"a","offsets":{},'
            '"inputRows":1,"outputRows":1,"latency":{"x":1}}'
        ),
        (
            '{"type":"TaskReport","generation":1,"slot":0,"attempt":"a","offsets":{},'
            '"inputRows":1,"outputRows":1,"latency":{},"badRecords":{"HUNGRY":1},"deadLetters":0}'
        ),
        (
            '{"type":"TaskReport","generation":1,"slot":0,"attempt":"a","offsets":{},'
            '"inputRows":1,"outputRows":1,"latency":{},"badRecords":{},"deadLetters":null}'
        ),
        *(
            '{"type":"TaskReport","generation":1,"slot":0,"attempt":"a","offsets":{},'
            f'"inputRows":1,"outputRows":1,"latency":{{}},"badRecords":{counts},"deadLetters":0}}'
            for counts in ("[]", '{"MALFORMED":-1}', '{"MALFORMED":"1"}', '{"MALFORMED":true}')
        ),
    ],
)
def test_malformed_messages_are_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011  # the text differs
        read_message(text)


def test_keys_of_other_versions_are_ignored():
    report = MESSAGES[1]
    newer = write_message(report).replace('{"type"', '{"unknown":{"a":1},"type"')
    assert read_message(newer) == report


@pytest.mark.parametrize("text", ['{"type":"Stop"}', '{"type":"AssignPartitions"}', "5"])
def test_malformed_commands_are_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011  # the text differs
        read_command(text)


def test_long_texts_of_errors_are_cut():
    read = read_message(write_message(TaskFailed(TASK, "C", "x" * 10_000, is_permanent=False)))
    assert isinstance(read, TaskFailed)
    assert len(read.message) == MAX_TEXT


def test_progress_adds_up():
    bad = BadRecordStats({FailureReason.MALFORMED: 1}, dead_letters=1)
    added = TaskProgress(1, 2, LatencyHistogram.of([1])) + TaskProgress(3, 4, bad_records=bad)
    assert added == TaskProgress(4, 6, LatencyHistogram.of([1]), bad)


def test_a_task_has_a_readable_name():
    assert str(TASK) == "task 2 (run 1, attempt 0.1)"


def test_each_partition_has_a_transactional_id():
    assert ContinuousSettings("query").transactional_id("t", 3) == "query-t-3"
