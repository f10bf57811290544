import pytest

from benchmarks.processor_time import Group, parse_process, seconds_by_group

TICKS = 100
DRIVER = 10


def process(pid, parent, arguments, own=(0, 0), dead=(0, 0), name="java"):
    """Return a process as the files of ``/proc`` say it, with ticks of a hundredth of a second."""
    counts = " ".join(map(str, (*own, *dead)))
    stat = f"{pid} ({name}) S {parent} 1 1 0 -1 4194304 5 6 7 8 {counts} 20 0 1 0\n"
    cmdline = b"".join(argument.encode() + b"\0" for argument in arguments)
    return parse_process(stat, cmdline, TICKS)


def test_each_process_counts_for_its_group_with_its_dead_children():
    processes = [
        process(DRIVER, 1, ["python", "-m", "benchmarks.scaling"], own=(100, 20)),
        process(11, DRIVER, ["java", "org.apache.spark.deploy.SparkSubmit"], own=(200, 0)),
        process(12, 11, ["python", "-m", "pyspark.daemon"], own=(5, 0), dead=(25, 5)),
        process(20, DRIVER, ["java", "org.apache.spark.deploy.worker.Worker"], own=(700, 0)),
        process(
            21,
            20,
            ["java", "org.apache.spark.executor.CoarseGrainedExecutorBackend", "--cores", "1"],
            own=(300, 10),
        ),
        process(22, 21, ["python", "-m", "pyspark.daemon"], own=(1, 1), dead=(400, 100)),
        process(23, 22, ["python", "-m", "pyspark.daemon"], own=(50, 8)),
        # A zombie has no arguments.
        process(24, 22, [], own=(40, 0)),
        process(30, DRIVER, ["java", "kafka.Kafka", "server.properties"], own=(60, 40)),
        process(31, DRIVER, ["java", "kafka.Kafka", "server.properties"], own=(50, 0)),
        process(40, 1, ["java", "kafka.Kafka", "of-another.properties"], own=(9_000, 0)),
    ]
    found = seconds_by_group(processes, DRIVER)
    assert found == pytest.approx(
        {Group.DRIVER: 3.55, Group.EXECUTORS: 3.1, Group.WORKERS: 6.0, Group.BROKERS: 1.5}
    )


def test_a_name_may_have_spaces_and_brackets():
    assert process(7, 3, ["a"], own=(150, 0), name="a (b) S 9").seconds == 1.5
    assert process(7, 3, ["a"], name="a (b) S 9").parent == 3
