"""A home of Spark for tests, and what makes it start fast."""

from .class_archive import making_class_archive
from .home import make_spark_home

__all__ = ["make_spark_home", "making_class_archive"]
