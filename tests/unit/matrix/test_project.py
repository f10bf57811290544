"""What the matrix reads from pyproject.toml."""

import pytest

from tests.matrix.project import Project, package_name

PROJECT = Project.of(
    {
        "project": {
            "dependencies": ["pyarrow>=18.0", "numpy>=1.26"],
            "optional-dependencies": {
                "spark": ["pyspark>=4.2,<5"],
                "google": ["google-auth[requests]>=2.30"],
                "all": ["pyspark-kafka[spark,google]"],
            },
        },
        "dependency-groups": {
            "dev": ["pytest>=8.3", "mypy>=1.14", "moto[s3]>=5.2", {"include-group": "kernels"}],
            "kernels": ["numba>=0.61"],
        },
    }
)


def test_packages_are_of_the_chosen_extras():
    """Names have neither bounds nor extras."""
    assert PROJECT.packages(["google"]) == {"pyarrow", "numpy", "google-auth"}
    assert PROJECT.packages(["spark"]) == {"pyarrow", "numpy", "pyspark"}


def test_all_is_no_extra_of_its_own():
    """The extra ``all`` only names the others."""
    assert PROJECT.extras.keys() == {"spark", "google"}


def test_checkers_are_not_installed():
    """Some need newer versions than the lowest; groups in the group are installed, too."""
    assert PROJECT.tests == ("pytest>=8.3", "moto[s3]>=5.2", "numba>=0.61")


def test_lower_bounds():
    """Lower bounds are found in the dependencies and in the extras."""
    assert (PROJECT.lowest("numpy"), PROJECT.lowest("pyspark")) == ("1.26", "4.2")
    with pytest.raises(LookupError, match="moto has no lower bound"):
        PROJECT.lowest("moto")


def test_names_are_normalized():
    """Two spellings of a name are one package."""
    assert package_name("Typing_Extensions>=4") == "typing-extensions"
    with pytest.raises(ValueError, match="not a requirement: >=1"):
        package_name(">=1")


def test_the_projects_own_file_is_read():
    """Everything that is installed without an extra has a lower bound."""
    project = Project.read()
    names = project.packages(project.extras)
    assert {"pyarrow", "pyspark", "confluent-kafka"} <= names
    assert all(map(project.lowest, names))
