import pytest

import pyspark_kafka


def test_dead_letters_cannot_be_counted_without_a_cluster():
    """The listener would count nothing, without a word."""
    with pytest.raises(ValueError, match="source_options"):
        pyspark_kafka.lag_listener(dead_letter_topic="letters")
