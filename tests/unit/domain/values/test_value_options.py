import pytest

from pyspark_kafka.domain.values.errors import UnencodableValueError
from pyspark_kafka.domain.values.value_options import SubjectNameStrategy, ValueOptions, subject_of

TOPIC, RECORD, BOTH = (
    SubjectNameStrategy.TOPIC_NAME,
    SubjectNameStrategy.RECORD_NAME,
    SubjectNameStrategy.TOPIC_RECORD_NAME,
)


@pytest.mark.parametrize(
    ("strategy", "topic", "expected"),
    [
        (TOPIC, "orders", "orders-key"),
        (TOPIC, None, None),
        (RECORD, "orders", "shop.Order"),
        (RECORD, None, "shop.Order"),
        (BOTH, "orders", "orders-shop.Order"),
        (BOTH, None, None),
    ],
)
def test_subjects(strategy, topic, expected):
    options = ValueOptions("key", "avro", subject_name_strategy=strategy)
    assert subject_of(options, topic, "shop.Order") == expected


def test_the_option_comes_first():
    options = ValueOptions("key", "avro", subject="mine", subject_name_strategy=RECORD)
    assert subject_of(options, None, None) == "mine"


def test_a_schema_without_a_name_has_no_such_subject():
    options = ValueOptions("key", "json", subject_name_strategy=BOTH)
    with pytest.raises(ValueError, match="TopicRecordNameStrategy needs a schema with the name"):
        subject_of(options, "orders", None)


def test_a_row_that_does_not_fit_is_named():
    error = UnencodableValueError("value", 3, "a.b", "is null, and the schema has no null there")
    assert (error.row, error.field) == (3, "a.b")
    assert "value of row 3 of a batch cannot be encoded: field 'a.b' is null, and" in str(error)
