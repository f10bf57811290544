"""The README, and the tutorials and guides whose examples need Spark and a real Kafka."""

import pytest

from tests.documents import WITH_SPARK, check_page, check_readme
from tests.interpreter import interpreter

pytestmark = pytest.mark.usefixtures("spark")


@pytest.mark.parametrize("name", WITH_SPARK)
def test_a_page_shows_what_it_says(name, topics, tmp_path):
    check_page(name, interpreter(), topics, tmp_path)


def test_the_queries_of_the_readme_run(topics, tmp_path):
    check_readme(interpreter(), topics, tmp_path)
