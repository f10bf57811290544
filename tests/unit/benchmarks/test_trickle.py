from benchmarks.trickle import executions_ms


def test_triggers_without_records_do_not_count():
    """Only a trigger that had records tells how long one takes."""
    progress = [
        {"numInputRows": 0, "durationMs": {"triggerExecution": 7}},
        {"numInputRows": 25, "durationMs": {"triggerExecution": 250}},
    ]
    assert executions_ms(progress) == [250]
