"""The suites on wrong adapters, as tests of a pytest that ``test_wrong_adapters.py`` starts."""

from collections.abc import Iterator

from .adapter import WrongAdapter
from .registry import FAULTS


def right_name(port: type) -> str:
    return f"Test{port.__name__}Right"


def wrong_name(port: type, wrong: WrongAdapter) -> str:
    return f"Test{port.__name__}Wrong{wrong}"


def _suites() -> Iterator[tuple[str, type]]:
    for port, faults in FAULTS.items():
        yield right_name(port), faults.right
        for wrong in faults.wrong:
            yield wrong_name(port, wrong), _only(wrong.suite, wrong.caught_by.__name__)


def _only(suite: type, test: str) -> type:
    """Return a suite with one of its tests, since collecting all takes longer than running it."""
    others = [name for name in dir(suite) if name.startswith("test_") and name != test]
    return type(suite.__name__, (suite,), dict.fromkeys(others))


globals().update(_suites())
