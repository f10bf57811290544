from benchmarks.spark import JVM, JVM_TUNED
from benchmarks.typed.writes import cases


def test_both_sides_are_shown_with_defaults_and_tuned():
    """A setting of Spark is on for our tuned writers alone."""
    for writers in cases().values():
        ours = [name for name in writers if name not in {JVM, JVM_TUNED}]
        assert [JVM, JVM_TUNED, *ours] == list(writers)
        assert [name for name in ours if writers[name].session] == [
            name for name in ours if name.endswith(", tuned")
        ]


def test_only_the_settings_of_clients_and_sessions_differ():
    """All writers leave acknowledgements, idempotence and compression at their defaults."""
    for writers in cases().values():
        for writer in writers.values():
            changed = {name.removeprefix("kafka.") for name in writer.options}
            assert not changed & {"acks", "enable.idempotence", "compression.type"}
