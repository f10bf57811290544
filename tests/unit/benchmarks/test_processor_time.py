import pytest

from benchmarks.processor_time import Group, parse_process, spent_between

TICKS = 100
DRIVER = 10
DAEMON = ["python", "-m", "pyspark.daemon"]


def process(pid, parent, arguments, user=0, system=0, name="java"):
    """Return a process as the files of ``/proc`` say it, with ticks of a hundredth of a second."""
    stat = f"{pid} ({name}) S {parent} 1 1 0 -1 4194304 5 6 7 8 {user} {system} 77 88 20 0 1 0\n"
    cmdline = b"".join(argument.encode() + b"\0" for argument in arguments)
    return parse_process(stat, cmdline, TICKS)


def test_each_process_counts_for_its_group():
    after = [
        process(DRIVER, 1, ["python", "-m", "benchmarks.scaling"], 100, 20),
        process(11, DRIVER, ["java", "org.apache.spark.deploy.SparkSubmit"], 200),
        process(12, 11, DAEMON, 25, 5),
        process(20, DRIVER, ["java", "org.apache.spark.deploy.worker.Worker"], 700),
        process(
            21,
            20,
            ["java", "org.apache.spark.executor.CoarseGrainedExecutorBackend", "--cores", "1"],
            300,
            10,
        ),
        process(22, 21, DAEMON, 1, 1),
        process(23, 22, DAEMON, 550, 8),
        # A zombie has no arguments.
        process(24, 22, [], 40),
        process(30, DRIVER, ["java", "kafka.Kafka", "server.properties"], 60, 40),
        process(31, DRIVER, ["java", "kafka.Kafka", "server.properties"], 50),
        process(40, 1, ["java", "kafka.Kafka", "of-another.properties"], 9_000),
    ]
    assert spent_between([], after, DRIVER) == pytest.approx(
        {Group.DRIVER: 3.5, Group.EXECUTORS: 3.1, Group.WORKERS: 6.0, Group.BROKERS: 1.5}
    )


def test_what_was_spent_before_is_not_counted_and_what_has_ended_subtracts_nothing():
    driver = process(DRIVER, 1, ["python"], 100)
    before = [driver, process(12, DRIVER, DAEMON, 70), process(13, DRIVER, DAEMON, 5)]
    after = [driver, process(13, DRIVER, DAEMON, 30), process(14, DRIVER, DAEMON, 25)]
    assert spent_between(before, after, DRIVER)[Group.DRIVER] == 0.5


def test_a_name_may_have_spaces_and_brackets():
    found = process(7, 3, ["a"], 150, name="a (b) S 9")
    assert (found.parent, found.seconds) == (3, 1.5)
