from tests.slowness import bound_s


def test_limits_grow_with_the_slowness_of_the_machine(monkeypatch):
    monkeypatch.setenv("PYSPARK_KAFKA_TEST_SLOWNESS", "2.5")
    assert (bound_s(60), bound_s(0.3)) == (150, 0.8)


def test_no_machine_is_faster_than_a_usual_one(monkeypatch):
    monkeypatch.delenv("PYSPARK_KAFKA_TEST_SLOWNESS")
    assert bound_s(60) >= 60


def test_every_test_has_a_limit_for_this_machine(request):
    assert request.node.get_closest_marker("timeout").args == (bound_s(600),)
