"""Tests whose result does not depend on the client."""

import pytest

one_client = pytest.mark.parametrize("client", ["kafka-python"])
"""For what is decided before any client is asked, or from offsets that contract suites hold it to.

Each such test starts queries of Spark, and would do the same with the other client.
"""
